"""titan doctor: each planted fault is named with its remedy, and remedies that can be run are run and help."""

import json
import os
import pathlib
import shutil
import socket
import subprocess

from doctor_case import DoctorCase
from harness import ROOT, TITAN, main, thorough, titan

PLUGINS = pathlib.Path(TITAN).parents[1] / "lib/titan/plugins"


class DoctorTest(DoctorCase):
    def test_a_sound_machine_has_no_problem(self):
        found = {name: check for name, check in self.examine().items() if check["health"] == "problem"}
        self.assertEqual(found, {})
        self.assertEqual(list(self.work.iterdir()), [])  # nothing is left behind

    def test_few_open_files(self):
        self.assert_holds(self.examine("ulimit -S -n 100", "open_files")["value"], "100")

    @thorough
    def test_a_broken_plugin(self):
        plugins = self.folder / "plugins"
        plugins.mkdir()
        (plugins / "broken.plugin.so").write_bytes(b"\x7fELF and then nothing")
        check = self.examine("", "plugin_file", TITAN_PLUGIN_PATH=str(plugins))
        self.assert_holds(check["value"], "broken.plugin.so")
        self.assertFalse((plugins / "broken.plugin.so").exists())

    @thorough
    def test_variables(self):
        for variables, name in (({"RANK": "first"}, "environment.RANK"), ({"OMP_NUM_THREADS": "many"}, "environment.OMP_NUM_THREADS"),
                                ({"RANK": "4", "WORLD_SIZE": "4"}, "environment.RANK"), ({"GLOO_SOCKET_IFNAME": "ib77"}, "environment.GLOO_SOCKET_IFNAME"),
                                ({"TITAN_PLUGIN_PATH": f"{self.folder}/none"}, "environment.TITAN_PLUGIN_PATH"),
                                ({"LC_ALL": "xx_YY.ISO-8859-1"}, "locale"), ({"MASTER_PORT": "http"}, "port.master"),
                                ({"TMPDIR": str(self.folder / "temporary")}, "environment.TMPDIR")):
            with self.subTest(**variables):
                script = "".join(f"export {key}={value}\n" for key, value in variables.items())
                check = self.examine(script, name)
                self.assertIn(next(iter(variables.values())), check["value"] + check["limit"])

    @thorough
    def test_a_busy_port(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            self.assert_holds(self.examine(f"export MASTER_PORT={port} RANK=0", "port.master")["value"], str(port), "in use")
            self.assertNotIn("port.master", self.examine(f"export MASTER_PORT={port} RANK=1"))

    @thorough
    def test_file_systems_that_lack_something(self):
        for fault, name, value in (("no locks", "folder.lock", "No locks available"), ("locks without effect", "folder.lock", "no effect"),
                                   ("no rename", "folder.rename", "cross-device link"), ("no fsync", "folder.fsync", "Input/output error"),
                                   ("old clock", "clock", "202"), ("slow clock", "clock.files", "60 s")):
            with self.subTest(fault):
                self.assertIn(value, self.examine("", name, mends=False, **self.preload(fault))["value"])

    @thorough
    def test_a_folder_without_permission(self):
        work = self.folder / "locked"
        work.mkdir()
        work.chmod(0o555)
        self.assert_holds(self.examine("", "folder.write", folder=work, unprivileged=True)["value"], str(work), "Permission denied")

    @thorough
    def test_another_torch(self):
        root = self.folder / "torch"
        (root / "lib").mkdir(parents=True)
        (root / "version.py").write_text("__version__ = '1.13.1+cpu'\n")
        import torch
        for library in (pathlib.Path(torch.__file__).parent / "lib").iterdir():
            (root / "lib" / library.name).symlink_to(library)
        check = self.examine(f"export LD_LIBRARY_PATH={root}/lib", "torch.version")
        self.assert_holds(check["value"], "1.13.1", str(root))
        for name in ("libc10.so", "libtorch_cpu.so"):
            (root / "lib" / name).unlink()
            (root / "lib" / name).write_bytes(b"")
        self.assert_holds(self.examine(f"export LD_LIBRARY_PATH={root}/lib", "torch.loads")["value"], "file too short")

    @thorough
    def test_a_missing_library(self):
        """A copy of the program, whose LibTorch is nowhere."""
        copy = self.folder / "copy"
        (copy / "bin").mkdir(parents=True)
        shutil.copytree(PLUGINS.parents[1], copy / "lib", symlinks=True, ignore=lambda folder, names: [
            name for name in names if name.endswith((".a", ".txt")) or (name.endswith(".plugin.so") and name != "doctor.plugin.so")])
        for name in ("titan", "titan-train"):
            data = (pathlib.Path(TITAN).parent / name).read_bytes()
            here = str(pathlib.Path(TITAN).parents[1] / "lib").encode()
            torch = os.path.join(os.path.dirname(__import__("torch").__file__), "lib").encode()
            (copy / "bin" / name).write_bytes(data.replace(torch, b"/" + b"x" * (len(torch) - 1)).replace(here, b"$ORIGIN/../lib".ljust(len(here), b"/")))
            (copy / "bin" / name).chmod(0o755)
        run = subprocess.run([copy / "bin/titan", "doctor", "--json", "--folder", self.folder], capture_output=True, text=True,
                             env={"PATH": "/usr/bin:/bin"})
        self.assertEqual(run.returncode, 1, run.stderr)
        check = next(check for check in json.loads(run.stdout)["checks"] if check["name"] == "torch.libraries")
        self.assert_holds(check["value"], "libtorch_cpu.so", "libc10.so")
        self.assert_holds(check["remedy"], "pip install torch==")

    @thorough
    def test_a_plugin_of_another_sdk(self):
        plugins = self.folder / "plugins"
        plugins.mkdir()
        data = (pathlib.Path(os.environ["TITAN_STRANGER"]) / "stranger.plugin.so").read_bytes()
        at = data.index(b"\0sdk_abi=") + 9
        (plugins / "old.plugin.so").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
        check = self.examine("", "plugin_file", mends=False, TITAN_PLUGIN_PATH=str(plugins))
        self.assert_holds(check["value"], "old.plugin.so", "sdk")
        self.assert_holds(check["remedy"], "cmake -S SOURCE", f"rm {plugins / 'old.plugin.so'}")

    @thorough
    def test_a_plugin_that_ends_the_process(self):
        plugins = self.folder / "plugins"
        shutil.copytree(pathlib.Path(TITAN).parents[1] / "tests/bad_plugins/aborts", plugins)
        check = self.examine("", "plugin_file", TITAN_PLUGIN_PATH=str(plugins))
        self.assert_holds(check["value"], str(plugins), "aborts")

    @thorough
    def test_limits_of_the_process(self):
        self.assert_holds(self.examine("ulimit -S -v 3000000", "memory.addresses")["value"], "3.07 GB")
        self.assert_holds(self.examine("ulimit -S -d 3000000", "memory.data")["value"], "3.07 GB")

    @thorough
    def test_what_a_recipe_needs(self):
        recipe = ["--job.config_file", ROOT / "train_configs/debug_model.toml", "--job.dump_folder", self.folder / "work"]
        self.assertEqual([name for name, check in self.examine(arguments=recipe).items() if check["health"] == "problem"], [])
        for more, name, value in ((["--training.stepz", "3"], "job", "stepz"), (["--device.name", "cuda", "--model.hf_assets_path", "/no/such"], "job", "/no/such"),
                                  (["--training.local_batch_size", "40000"], "memory", "available"),
                                  (["--checkpoint.enable", "--checkpoint.keep_latest_k", "1000000"], "folder.space", "free")):
            with self.subTest(name):
                self.assertIn(value, self.examine("", name, arguments=[*recipe, *more], mends=False)["value"])

    def test_the_text_names_value_limit_effect_and_remedy(self):
        run = titan("doctor", "--folder", self.folder, RANK="x")
        self.assertEqual((run.returncode, run.stderr), (1, ""))
        self.assertRegex(run.stdout, r"problem  environment\.RANK +environment variable RANK = 'x'.*\n +needs: an integer >= 0\n +breaks: .*\n +remedy: unset RANK\n")
        self.assertRegex(run.stdout, r"\n\d+ problems?, \d+ warnings?\n$")


if __name__ == "__main__":
    main()
