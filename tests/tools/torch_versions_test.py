"""sdk/torch_versions.txt: its readers, and the message for a LibTorch that is not in it."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
ROWS = [line.split() for line in (ROOT / "sdk/torch_versions.txt").read_text().splitlines() if line[:1].isdigit()]
VERSIONS = [row[0] for row in ROWS]
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(asks LANGUAGES NONE)
set(TITAN_TORCH_VERSIONS_FILE {root}/sdk/torch_versions.txt)
function(add_library)
endfunction()
function(target_include_directories)
endfunction()
function(target_compile_definitions)
endfunction()
function(target_compile_options)
endfunction()
function(target_link_libraries)
endfunction()
function(target_link_options)
endfunction()
include({root}/sdk/cmake/TitanTorch.cmake)
message(STATUS "torch ${{TITAN_TORCH_VERSION}} nccl ${{TITAN_TORCH_NCCL}} cuda ${{TITAN_TORCH_CUDA}}.")
"""


class TorchVersions(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def fake_torch(self, version):
        torch = self.folder / f"torch-{version}"
        for folder in ("include/torch/headeronly", "include/ATen", "lib"):
            (torch / folder).mkdir(parents=True)
        (torch / "lib/libtorch_cpu.so").touch()
        parts = zip(("MAJOR", "MINOR", "PATCH"), version.split("."))
        (torch / "include/torch/headeronly/version.h").write_text("".join(f"#define TORCH_VERSION_{n} {v}\n" for n, v in parts))
        return torch

    def setup_of_a_copy(self, *words, **environment):
        """tools/setup.sh in an otherwise empty tree; returns its message when it ends before its first step."""
        for name in ("tools/setup.sh", "sdk/torch_versions.txt"):
            (self.folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.folder / "tree" / name)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TITAN_")}
        done = subprocess.run([self.folder / "tree/tools/setup.sh", *words], env={**kept, **environment}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stderr

    def configure(self, torch):
        (self.folder / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT))
        done = subprocess.run([os.environ["TITAN_CMAKE"], "-S", self.folder, "-B", self.folder / f"build {torch.name}",
                               f"-DTITAN_TORCH_ROOT={torch}"], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def test_each_row_names_all_wheels(self):
        self.assertEqual(len(set(VERSIONS)), len(VERSIONS))
        for version, pythons, cuda, runtime, cupti, crt, nccl in ROWS:
            self.assertRegex(pythons, r"^3\.\d+-3\.\d+$")
            for wheel in (runtime, cupti, crt):
                self.assertTrue(wheel.startswith(cuda + "."), f"{version}: wheel {wheel} of CUDA {cuda}")
            self.assertRegex(nccl, r"^\d+\.\d+\.\d+$")

    def test_the_number_stands_nowhere_else(self):
        for name in ("requirements-test.txt", "CMakeLists.txt", "tools/setup.sh", "tools/gpu_bundle.py"):
            for version in VERSIONS:
                self.assertNotIn(version, (ROOT / name).read_text(), name)
        readme = (ROOT / "README.md").read_text()
        for version in VERSIONS:
            self.assertIn(version, readme)

    def test_setup_refuses_others_before_it_does_anything(self):
        there = "choose a supported version with --torch or TITAN_TORCH_ROOT: " + " ".join(VERSIONS)
        said = self.setup_of_a_copy("--torch", "2.9.0")
        self.assertIn("LibTorch 2.9.0 is not supported", said)
        self.assertIn(there, said)
        said = self.setup_of_a_copy(TITAN_TORCH_ROOT=str(self.fake_torch("2.12.0")))
        self.assertIn("LibTorch 2.12.0 is not supported", said)
        self.assertIn(there, said)

    def test_cmake_takes_each_of_them_and_refuses_others(self):
        for version, *_, nccl in ROWS:
            code, said = self.configure(self.fake_torch(version))
            self.assertEqual(code, 0, said)
            self.assertIn(f"torch {version} nccl {nccl.rpartition('.')[0]} cuda .", said)
        code, said = self.configure(self.fake_torch("2.12.0"))
        self.assertNotEqual(code, 0)
        self.assertIn("LibTorch 2.12.0 in", said)
        self.assertIn("Titan supports only " + " or ".join(VERSIONS), said)


if __name__ == "__main__":
    unittest.main()
