"""tools/torchtitan_config.py: converts configurations of torchtitan 0.3.0 to files that titan accepts, and loses
nothing silently.

tests/assets/torchtitan_0_3 was made by `tools/torchtitan_config.py --module M --config C --keep FILE` with torchtitan
0.3.0.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
KEPT = ROOT / "tests/assets/torchtitan_0_3"
sys.path.insert(0, str(ROOT / "tools"))
import torchtitan_config  # noqa: E402

# parameters as torchtitan counts them, of models without a converter
PARAMETERS = {"llama3_debugmodel": "6,163,712", "llama3_70b": "70,553,706,496", "deepseek_v3_16b": "15,706,484,224",
              "sft_debugmodel": "6,163,712", "llama3_debugmodel_float8_emulate_lora": ""}


def toml_of(name, **changed):
    config = json.loads((KEPT / f"{name}.json").read_text())
    for path, value in changed.items():
        section, _, key = path.partition("__")
        config[section][key] = value
    return torchtitan_config.Translation(config).toml()


class TorchtitanConfig(unittest.TestCase):
    def test_titan_accepts_what_comes_out(self):
        self.assertEqual({path.stem for path in KEPT.glob("*.json")}, set(PARAMETERS))
        for name, parameters in PARAMETERS.items():
            with self.subTest(name=name), tempfile.TemporaryDirectory() as folder:
                recipe = pathlib.Path(folder) / "job.toml"
                recipe.write_text(toml_of(name))
                run = subprocess.run([os.environ["TITAN_PROGRAM"], "train", "--dry-run", "--elsewhere", "--world-size", "64",
                                      "--job.config_file", recipe], cwd=ROOT, capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertIn(f"has {parameters}", run.stderr)

    def test_values_arrive_under_their_names_here(self):
        job = tomllib.loads(toml_of("llama3_70b"))
        self.assertEqual(job["model"], {"name": "llama3", "flavor": "70B", "hf_assets_path": "./assets/hf/Llama-3.1-70B"})
        self.assertEqual((job["optimizer"]["lr"], job["optimizer"]["beta2"], job["optimizer"]["name"]), (1.5e-4, 0.95, "AdamW"))
        self.assertEqual((job["activation_checkpoint"]["mode"], job["training"]["dataset"]), ("full", "c4"))
        self.assertEqual(job["validation"]["dataset"], "c4_validation")
        self.assertEqual(job["parallelism"]["tensor_parallel_degree"], 8)
        changed = toml_of("llama3_70b", compile__enable_async_tensor_parallel=True, training__disable_cuda_graphs=True)
        self.assertTrue(tomllib.loads(changed)["parallelism"]["enable_async_tensor_parallel"])
        self.assertIs(tomllib.loads(changed)["compile"]["graphs"], False)

    def test_what_has_no_counterpart_is_listed(self):
        self.assertNotIn("Not carried over", toml_of("llama3_70b"))
        said = toml_of("llama3_70b", parallelism__enable_sequence_parallel=False, override__imports=["mine"], debug__batch_invariant=True,
                       parallelism__a_new_key=3)
        for line in ("parallelism.enable_sequence_parallel = false", 'override.imports = ["mine"]', "debug.batch_invariant = true",
                     "parallelism.a_new_key = 3"):
            self.assertIn(f"#   {line}", said)
        said = toml_of("llama3_debugmodel_float8_emulate_lora")
        self.assertEqual(tomllib.loads(said)["model"]["converters"], ["quantize.linear.float8", "lora"])
        self.assertIn("titan describe converter lora", said)
        self.assertIn("the dataset 'messages'", toml_of("sft_debugmodel"))


if __name__ == "__main__":
    unittest.main()
