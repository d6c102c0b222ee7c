#!/usr/bin/env python3
"""tools/gpu_bundle.sh: the pieces of a bundle, a bundle of this build that passes its check, and damage that the
check finds."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = pathlib.Path(os.environ["TITAN_SOURCE_DIR"]), pathlib.Path(os.environ["TITAN_BUILD"])
sys.path.insert(0, str(SOURCE / "tools"))
import gpu_bundle  # noqa: E402
import scrub_paths  # noqa: E402

CACHE = gpu_bundle.cache_of(BUILD)
TORCH = pathlib.Path(CACHE["TITAN_TORCH_ROOT"])


class Pieces(unittest.TestCase):

    def test_removes_folders_and_keeps_every_length(self):
        content = b"at /src/titan/core/a.cpp:1\0/src/titan/.venv/torch/include/x.h\0/src/titanium/b\0"
        new, count = scrub_paths.scrub(content, {pathlib.Path("/src/titan"), pathlib.Path("/src/titan/.venv/torch")})
        self.assertEqual(count, 2)
        self.assertEqual(len(new), len(content))
        self.assertNotIn(b"/src/titan/", new)
        self.assertNotIn(b".venv", new)
        for kept in (b"core/a.cpp:1\0", b"include/x.h\0", b"/src/titanium/b\0"):
            self.assertIn(kept, new)

    def test_knows_the_symbol_versions_of_ubuntu(self):
        self.assertEqual(gpu_bundle.too_new({"GLIBC_2.39", "GLIBC_2.4", "GLIBCXX_3.4.33", "CXXABI_1.3.9", "GOMP_9.0"}), [])
        self.assertEqual(gpu_bundle.too_new({"GLIBC_2.40", "GLIBCXX_3.4.34"}), ["GLIBCXX_3.4.34", "GLIBC_2.40"])

    def test_takes_the_modules_that_scripts_import(self):
        names = {str(path.relative_to(SOURCE)) for path in gpu_bundle.scripts()}
        wanted = {"tests/gpu/run_all.sh", "tests/gpu/run_all.py", "tests/parity/ladder.py", "tests/parity/layouts.py"}
        self.assertEqual(wanted - names, set())
        self.assertFalse([name for name in names if name.endswith((".cmake", ".cpp", ".pyc"))])

    def sourced(self, folder, **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TITAN_", "LD_", "PYTHON"))}
        script = '. "$0/env.sh" && printf "%s\\n" "$TITAN_TORCH_ROOT" "$LD_LIBRARY_PATH" "$PATH"'
        return subprocess.run(["bash", "-c", script, folder], env=dict(kept, PYTHONDONTWRITEBYTECODE="1", **variables),
                              capture_output=True, text=True)

    def test_environment_finds_torch(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            bundle, torch, nvidia = folder / "a bundle", folder / "site/torch", folder / "site/nvidia/cu13/lib"
            for made in (bundle, torch / "lib", nvidia):
                made.mkdir(parents=True)
            (bundle / "env.sh").write_text(gpu_bundle.ENVIRONMENT)
            self.assertIn("from bash", self.sourced(bundle).stderr)
            (bundle / "bundle.json").write_text("{}")
            self.assertIn("no torch", self.sourced(bundle, TITAN_TORCH_ROOT=str(torch)).stderr)
            (torch / "__init__.py").write_text("raise ImportError\n")
            (torch / "lib/libtorch_cpu.so").touch()
            for variables in ({"TITAN_TORCH_ROOT": str(torch)}, {"PYTHONPATH": str(folder / "site")}):
                done = self.sourced(bundle, LD_LIBRARY_PATH="/last", **variables)
                found, libraries, path = done.stdout.splitlines()
                self.assertEqual(found, str(torch))
                libraries = libraries.split(":")
                self.assertEqual(libraries[:4], [f"{bundle}/lib", f"{bundle}/debian", f"{torch}/lib", str(nvidia)])
                self.assertEqual(libraries[-1], "/last")
                self.assertTrue(path.startswith(f"{bundle}/bin:"))


@unittest.skipUnless(CACHE["CMAKE_BUILD_TYPE"] == "Release", "bundles are made of release builds")
@unittest.skipUnless((BUILD / "lib/titan/plugins/cuda.plugin.so").exists(), "this build has no cuda plugin (see TITAN_CUDA)")
class Bundle(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.bundle = pathlib.Path(cls.folder.name).resolve() / "bundle"
        cls.made = cls.make(cls.bundle, "--check")

    @staticmethod
    def make(*words):
        return subprocess.run([SOURCE / "tools/gpu_bundle.sh", *words, "--skip-build", "--no-losses", "--build", BUILD],
                              capture_output=True, text=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_passes_its_check(self):
        self.assertEqual(self.made.returncode, 0, self.made.stdout + self.made.stderr)
        for line in ("ten steps of the debug model: passed", "device_probe: passed", "titan_gpu_tests: passed"):
            self.assertIn(line, self.made.stdout)
        self.assertEqual(self.made.stdout.splitlines()[-1], "check: passed")
        facts = json.loads((self.bundle / "bundle.json").read_text())
        self.assertEqual(facts["schema"], 1)
        self.assertIn(facts["torch"].split("+")[0], gpu_bundle.TORCH_VERSIONS)
        self.assertLess(facts["bytes"], gpu_bundle.LIMIT)

    def test_refuses_to_replace_another_folder(self):
        other = self.bundle.with_name("other")
        other.mkdir()
        (other / "thesis.tex").touch()
        done = self.make(other)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not a bundle", done.stderr)
        self.assertTrue((other / "thesis.tex").exists())

    def test_finds_damage(self):
        damaged = self.bundle.with_name("damaged")
        shutil.copytree(self.bundle, damaged)
        self.assertEqual(gpu_bundle.static_problems(damaged, TORCH), [])
        library = next((damaged / "debian").glob("libxxhash.so*"))
        library.unlink()
        (damaged / "train_configs/note.txt").write_text(f"see {SOURCE}/docs")
        plugin = damaged / "lib/titan/plugins/llama.plugin.so"
        plugin.write_bytes(plugin.read_bytes().replace(gpu_bundle.SECTION, b".another_name"))
        shutil.copy(BUILD / "lib/titan/plugins/cpu.plugin.so", damaged / "lib/titan/plugins")
        found = "\n".join(gpu_bundle.static_problems(damaged, TORCH))
        for words in (f"debian/{library.name} is missing", f"needs {library.name}, which neither the bundle nor Ubuntu 24.04 has",
                      "train_configs/note.txt is not listed", f"train_configs/note.txt contains the path {SOURCE}",
                      "llama.plugin.so has no manifest", "llama.plugin.so differs from its hash in bundle.json",
                      f"cpu.plugin.so has the search path {BUILD}/lib"):
            self.assertIn(words, found)


if __name__ == "__main__":
    unittest.main()
