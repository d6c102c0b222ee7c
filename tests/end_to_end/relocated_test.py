"""An installation that was moved to another folder: it names no folder of its build, finds LibTorch, and trains on the bundled text."""

import json
import os
import pathlib
import subprocess
import sys

from harness import HANG, ROOT, TITAN, Case, losses, main
from installed import CMAKE

BUILD = pathlib.Path(TITAN).parents[1]
TORCH = pathlib.Path(os.environ["TITAN_TORCH_ROOT"])
TRAIN = ("train", "--training.steps", "2", "--training.seq_len", "64")


class RelocatedTest(Case):
    def setUp(self):
        super().setUp()
        first = self.folder / "first"
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", first], check=True, capture_output=True, timeout=HANG)
        self.prefix = self.folder / "site/titan"
        self.prefix.parent.mkdir()
        first.rename(self.prefix)
        self.empty = self.folder / "empty"
        self.empty.mkdir()

    def run_moved(self, *words, **variables):
        """Runs the moved titan in an empty folder with no variables but these."""
        variables = {"PATH": "/usr/bin:/bin", "HOME": str(self.empty), "OMP_NUM_THREADS": "1", **variables}
        return subprocess.run([self.prefix / "bin/titan", *words], cwd=self.empty, env=variables, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=HANG)

    def test_it_names_no_folder_of_its_build(self):
        folders = [word for folder in (ROOT, BUILD, self.folder / "first") for word in ("--without", str(folder))]
        run = subprocess.run([sys.executable, ROOT / "tools/check_package.py", self.prefix, *folders], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"platform tag: manylinux_2_\d+_")
        damaged = self.prefix / "share/titan/note"
        damaged.write_text(f"built in {BUILD}")
        run = subprocess.run([sys.executable, ROOT / "tools/check_package.py", self.prefix, *folders], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("share/titan/note contains", run.stderr)

    def test_it_trains_on_the_bundled_text_from_any_folder(self):
        listed = self.run_moved("list")  # needs no LibTorch
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("llama3", listed.stdout)
        run = self.run_moved(*TRAIN, TITAN_TORCH_ROOT=str(TORCH))
        self.assertEqual(run.returncode, 0, run.stderr)
        recipe = ("--job.config_file", "train_configs/debug_model.toml", "--job.dump_folder", "ranks", "--training.global_batch_size", "4")
        run = self.run_moved("launch", "--nproc", "2", "--", *TRAIN, *recipe, TITAN_TORCH_ROOT=str(TORCH))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(losses(self.empty / "ranks")), 2)

    def test_the_doctor_looks_for_libtorch_where_titan_does(self):
        for variables, health in (({"TITAN_TORCH_ROOT": str(TORCH)}, "ok"), ({}, "problem")):
            run = self.run_moved("doctor", "--json", "--folder", self.folder, **variables)
            checks = {check["name"]: check for check in json.loads(run.stdout)["checks"]}
            self.assertEqual(checks.get("torch.loads", checks.get("torch.libraries"))["health"], health, checks)

    def test_libtorch_next_to_it_is_found_without_variables(self):
        for name in ("torch", "nvidia"):
            if (TORCH.parent / name).exists():
                (self.prefix.parent / name).symlink_to(TORCH.parent / name)
        run = self.run_moved(*TRAIN)
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    main()
