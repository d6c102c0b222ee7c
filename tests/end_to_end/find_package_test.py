"""find_package(Titan): requires the exact LibTorch, or fails with a message that says what to do."""

import pathlib
import re
import subprocess

from harness import HANG, ROOT, Case, environment, main
from installed import CMAKE, PREFIX

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(stranger LANGUAGES CXX)
find_package(Titan REQUIRED)
message(STATUS "sdk ${TITAN_SDK_VERSION} torch ${TITAN_TORCH_VERSION} titan ${Titan_EXECUTABLE}")
"""


class FindPackageTest(Case):
    def configure(self, *definitions, prefix=PREFIX, text=PROJECT):
        source = self.write("project/CMakeLists.txt", text).parent
        run = subprocess.run([CMAKE, "-S", source, "-B", self.folder / "build", f"-DTitan_ROOT={prefix}", *definitions],
                             env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG)
        # CMake wraps its output
        return run.returncode, " ".join(run.stdout.split()), " ".join(run.stderr.split())

    def fake_torch(self, major, minor, patch):
        self.write("torch/include/torch/headeronly/version.h",
                   f"#pragma once\n#define TORCH_VERSION_MAJOR {major}\n#define TORCH_VERSION_MINOR {minor}\n"
                   f"#define TORCH_VERSION_PATCH {patch}\n")
        return self.folder / "torch"

    def built_with(self):
        return re.search(r'TITAN_TORCH_VERSION "([\d.]+)"', (PREFIX / "lib/cmake/Titan/TitanConfig.cmake").read_text())[1]

    def test_the_package_is_found_with_the_torch_it_was_built_with(self):
        code, out, err = self.configure()
        self.assertEqual(code, 0, err)
        version = re.search(r"^project\(Titan VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
        self.assertIn(f"sdk {version} torch {self.built_with()}", out)
        program = pathlib.Path(out.split(" titan ")[1].split()[0])
        self.assertEqual(program.resolve(), (PREFIX / "bin/titan").resolve())
        self.assertTrue(program.is_file())

    def test_another_torch_is_refused_by_name(self):
        major, minor, patch = map(int, self.built_with().split("."))
        for version in ((2, 10, 0), (major, minor, patch + 1), (major, minor + 1, patch)):
            with self.subTest(version=version):
                torch = self.fake_torch(*version)
                code, _, err = self.configure(f"-DTITAN_TORCH_ROOT={torch}")
                self.assertNotEqual(code, 0)
                found = ".".join(map(str, version))
                self.assert_holds(err, f"LibTorch {found} in {torch} cannot be used", f"exactly {self.built_with()}",
                                  "Set TITAN_TORCH_ROOT")

    def test_a_folder_without_torch_says_how_to_get_it(self):
        code, _, err = self.configure(f"-DTITAN_TORCH_ROOT={self.folder / 'empty'}")
        self.assertNotEqual(code, 0)
        self.assert_holds(err, f"LibTorch {self.built_with()} was not found", str(self.folder / "empty"),
                          f"torch=={self.built_with()}",
                          "TITAN_TORCH_ROOT=<folder>")

    def test_another_version_of_titan_is_refused(self):
        code, _, err = self.configure(text=PROJECT.replace("find_package(Titan", "find_package(Titan 9.0"))
        self.assertNotEqual(code, 0)
        self.assert_holds(err, "Titan", "9.0", "version")

    def test_a_mistake_in_titan_add_plugin_is_named(self):
        code, _, err = self.configure(text=PROJECT + "titan_add_plugin(x VERSION 1.0.0 PROVIDES AdamX SOURCES x.cpp)\n")
        self.assertNotEqual(code, 0)
        self.assert_holds(err, "titan_add_plugin(x): PROVIDES takes <kind>:<name>, got 'AdamX'")


if __name__ == "__main__":
    main()
