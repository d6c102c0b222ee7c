"""`titan` itself: commands that it answers directly, and how it delegates others to the programs next to it."""

import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from harness import HANG, ROOT, TITAN, Case, environment, main, titan

BIN = pathlib.Path(TITAN).parent


class FrontTest(Case):
    def libraries(self, program):
        run = subprocess.run(["ldd", BIN / program], capture_output=True, text=True, check=True)
        return {pathlib.PurePath(line.split()[0]).name for line in run.stdout.splitlines()}

    def test_it_loads_no_torch_and_what_trains_does(self):
        torch = re.compile(r"lib(torch|c10)")
        self.assertFalse([name for name in self.libraries("titan") if torch.match(name)])
        self.assertTrue([name for name in self.libraries("titan-train") if torch.match(name)])

    def test_every_command_of_the_help_is_had_by_some_program(self):
        listed = re.findall(r"^  ([a-z-]+) ", titan("--help").stdout, re.M)
        self.assertGreater(len(listed), 15)
        for command in listed:
            texts = set()
            for words in ([command, "--help"], [command, "-h"], ["help", command]):
                run = titan(*words)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertIn(command, run.stdout)
                texts.add(run.stdout)
            self.assertEqual(len(texts), 1)

    def test_an_unknown_command_is_named_before_any_program_is_looked_for(self):
        run = titan("tarin")
        self.assertEqual(run.returncode, 2)
        self.assertIn("unknown command 'tarin'", run.stderr)

    def test_a_program_that_is_missing_from_an_installation_is_named(self):
        (self.out / "bin").mkdir(parents=True)
        shutil.copy(TITAN, self.out / "bin" / "titan")
        run = subprocess.run([self.out / "bin" / "titan", "train"], capture_output=True, text=True, env=environment())
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("titan-train", run.stderr)
        self.assertIn("it is installed with titan", run.stderr)

    def test_the_version_names_commit_torch_and_sdk(self):
        version = re.search(r"^project\(Titan VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
        supported = re.findall(r"^([\d.]+) ", (ROOT / "sdk/torch_versions.txt").read_text(), re.M)
        text = titan("--version").stdout
        found = re.fullmatch(r"titan (\S+) \(commit ([0-9a-f]{12}|unknown), LibTorch (\S+), sdk ([0-9a-f]{16}), .*\)\n", text)
        self.assertTrue(found, text)
        self.assertEqual(found[1], version)
        self.assertIn(found[3], supported)
        sys.path.insert(0, str(ROOT / "tools/wheel"))
        import titan_metadata  # the wheel has the same version
        self.assertEqual(titan_metadata.dynamic_metadata("version").partition("+")[0], version)
        self.assertEqual(titan_metadata.dynamic_metadata("dependencies"), [f"torch=={supported[0]}"])

    def made_up_installation(self):
        """`titan` without a build tree; titan-train prints how it would find its libraries."""
        prefix = self.folder / "prefix"
        (prefix / "bin").mkdir(parents=True)
        shutil.copy(TITAN, prefix / "bin/titan")
        train = prefix / "bin/titan-train"
        train.write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH"\n')
        train.chmod(0o755)
        return prefix

    def made_up_torch(self, folder, version):
        major, minor, patch = version.split(".")
        header = folder / "torch/include/torch/headeronly/version.h"
        header.parent.mkdir(parents=True)
        header.write_text(f"#define TORCH_VERSION_MAJOR {major}\n#define TORCH_VERSION_MINOR {minor}\n#define TORCH_VERSION_PATCH {patch}\n")
        (folder / "torch/lib").mkdir()
        (folder / "torch/lib/libtorch_cpu.so").touch()
        return folder / "torch"

    def run_installed(self, prefix, torch_of_python, **variables):
        """`titan train` with a python3 that has its torch in the folder `torch_of_python`."""
        python = self.folder / "path/python3"
        python.parent.mkdir(exist_ok=True)
        python.write_text(f'#!/bin/sh\necho "{torch_of_python}"\n')
        python.chmod(0o755)
        variables = {"PATH": f"{python.parent}:/usr/bin:/bin", **{name: str(value) for name, value in variables.items()}}
        return subprocess.run([prefix / "bin/titan", "train"], env=variables, capture_output=True, text=True, timeout=HANG)

    def test_an_installation_finds_libtorch_in_each_place(self):
        version = re.search(r"LibTorch ([\d.]+)", titan("--version").stdout)[1]
        prefix = self.made_up_installation()
        given, python = self.made_up_torch(self.folder / "given", version), self.made_up_torch(self.folder / "python", version)
        active = self.made_up_torch(self.folder / "venv/lib/python3.11/site-packages", version)
        venv = self.folder / "venv"
        for variables, found in (({"TITAN_TORCH_ROOT": given, "VIRTUAL_ENV": venv}, given), ({"VIRTUAL_ENV": venv}, active), ({}, python)):
            with self.subTest(found=found):
                run = self.run_installed(prefix, python, LD_LIBRARY_PATH="/before", **variables)
                self.assertEqual(run.stdout, f"{found}/lib:/before\n", run.stderr)
        self.made_up_torch(self.folder, version)  # next to the installation, where RUNPATH finds it
        self.assertEqual(self.run_installed(prefix, python, VIRTUAL_ENV=venv, TITAN_TORCH_ROOT=given).stdout, "\n")

    def test_another_libtorch_is_refused_with_places_and_remedy(self):
        version = re.search(r"LibTorch ([\d.]+)", titan("--version").stdout)[1]
        prefix = self.made_up_installation()
        older = self.made_up_torch(self.folder / "venv/lib/python3.11/site-packages", "2.1.0")
        for variables in ({"VIRTUAL_ENV": self.folder / "venv"}, {"TITAN_TORCH_ROOT": older}):
            run = self.run_installed(prefix, "", **variables)
            self.assertEqual(run.returncode, 2, run.stdout)
            self.assertEqual(run.stdout, "")
            for part in (f"built for LibTorch {version}", next(iter(variables)) if "TITAN_TORCH_ROOT" in variables else "active environment",
                         f"LibTorch 2.1.0 in {older}", f"pip install torch=={version}", "TITAN_TORCH_ROOT"):
                self.assertIn(part, run.stderr)
        self.assertIn("python3: no LibTorch", self.run_installed(prefix, "", VIRTUAL_ENV=self.folder / "venv").stderr)

    def made_up_tree(self):
        """A build tree with only `titan`, and a cmake in the PATH that records its arguments and builds a program."""
        tree = self.out / "build" / "release"
        (tree / "bin").mkdir(parents=True)
        shutil.copy(TITAN, tree / "bin" / "titan")
        (tree / "lib").symlink_to(BIN.parent / "lib")
        (tree / "CMakeCache.txt").touch()
        cmake = self.out / "path" / "cmake"
        cmake.parent.mkdir()
        cmake.write_text('#!/bin/sh\necho "$@" >>"$0.calls"\nprintf \'#!/bin/sh\\necho built\\n\' >"$2/bin/titan-train"\n'
                         'chmod +x "$2/bin/titan-train"\n')
        cmake.chmod(0o755)
        return tree, cmake.with_suffix(".calls"), {**environment(), "PATH": f"{cmake.parent}:{os.environ['PATH']}"}

    def test_help_of_a_program_that_is_not_built_starts_no_build(self):
        tree, calls, variables = self.made_up_tree()
        for words in (["estimate", "--help"], ["estimate", "--ranks", "2", "-h"]):
            run = subprocess.run([tree / "bin/titan", *words], capture_output=True, text=True, env=variables, timeout=HANG)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("usage: titan estimate [--job.config_file FILE]", run.stdout)
            self.assertIn(f"cmake --build {tree} --target titan_train", run.stdout)
        self.assertFalse(calls.exists())

    def test_a_plugin_with_a_command_is_built_when_the_command_is_called(self):
        tree, calls, variables = self.made_up_tree()
        (tree / "lib").unlink()
        plugins = tree / "lib/titan/plugins"
        plugins.mkdir(parents=True)
        (plugins / "plugins.txt").write_text("# build: make\n# summary command:flight: diagnose a hang from flight records: which rank waits for which\nflight command:flight\n")
        for library in (BIN.parent / "lib").glob("*.so"):
            (tree / "lib" / library.name).symlink_to(library)
        built = BIN.parent / "lib/titan/plugins/flight.plugin.so"
        calls.with_suffix("").write_text(f'#!/bin/sh\necho "$@" >>"$0.calls"\ncp {built} "$2/lib/titan/plugins"\n')

        def run(*words):
            return subprocess.run([tree / "bin/titan", *words], capture_output=True, text=True, env=variables, timeout=HANG)

        self.assertRegex(run("--help").stdout, r"(?m)^  flight +diagnose a hang")
        shown = run("flight", "--help")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("diagnose a hang", shown.stdout)
        self.assertIn(f"cmake --build {tree} --target flight.plugin", shown.stdout)
        self.assertFalse(calls.exists())
        done = run("flight", self.out)
        self.assertEqual(calls.read_text(), f"--build {tree} --target flight.plugin\n")
        self.assertIn("building flight.plugin", done.stderr)
        self.assertEqual(done.returncode, 1)  # this folder has no flight record
        self.assertIn("usage: titan flight FOLDER", run("flight", "--help").stdout)

    def test_a_build_for_a_command_waits_for_the_build_that_is_at_work(self):
        tree, calls, variables = self.made_up_tree()
        with open(tree.parent / ".setup.lock", "w") as lock:  # like tools/setup.sh
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = subprocess.Popen([tree / "bin/titan", "estimate"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env=variables)
            self.assertIn("another build is running", process.stderr.readline())
            self.assertFalse(calls.exists())
        out, errors = process.communicate(timeout=HANG)
        self.assertEqual((process.returncode, out), (0, "built\n"), errors)
        self.assertEqual(calls.read_text(), f"--build {tree} --target titan_train\n")

    def test_the_process_that_was_started_is_the_one_that_trains(self):
        """A launcher sends signals to this process and reads its exit code."""
        process = subprocess.Popen([TITAN, "train", "--job.config_file", "train_configs/debug_model.toml", "--training.steps", "100000",
                                    "--job.dump_folder", str(self.out)], cwd=ROOT, env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            for line in process.stderr:
                if "step" in line:
                    break
            self.assertEqual(os.readlink(f"/proc/{process.pid}/exe"), str(BIN.resolve() / "titan-train"))
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=HANG)
        finally:
            process.kill()


if __name__ == "__main__":
    main()
