"""tools/same_bits.py with stand-in programs: it finds and names differences, and reports equal results as equal."""

import os
import pathlib
import stat
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tools"))
import same_bits  # noqa: E402

# Writes the files of a run: a line per step, and a checkpoint of one tensor whose bytes are WEIGHT.
PROGRAM = '''#!/usr/bin/env python3
import json, pathlib, struct, sys
words = sys.argv[1:]
out = pathlib.Path(words[words.index("--job.dump_folder") + 1])
first = int(words[words.index("--checkpoint.load_step") + 1]) if "--checkpoint.load_step" in words else 0
if {fails}:
    sys.exit("no such thing")
out.mkdir(parents=True, exist_ok=True)
with open(out / "metrics.jsonl", "a") as file:
    for step in range(first + 1, 5):
        file.write(json.dumps({{"step": step, "loss_metrics/global_avg_loss": {loss} / step, "grad_norm": {norm} + first}}) + "\\n")
for step in (2, 4):
    header = json.dumps({{"model.weight": {{"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}}}).encode()
    folder = out / f"checkpoint/step-{{step}}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<f", {weight} * step))
'''


class SameBits(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def result(self, name, job="dense fp32", **changes):
        root = self.folder / name
        program = root / "build/release/bin/titan"
        program.parent.mkdir(parents=True)
        program.write_text(PROGRAM.format(**{"loss": 8.0, "norm": 1.5, "weight": 0.25, "fails": False, **changes}))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        work = self.folder / f"work of {name}"
        work.mkdir()
        return same_bits.result_of(same_bits.Side(name, root), job, work)

    def test_the_same_program_is_the_same(self):
        self.assertIsNone(same_bits.first_difference(self.result("a"), self.result("b")))

    def test_a_last_bit_of_each_kind_is_found(self):
        old = self.result("a")
        for name, changes, part in (("loss", {"loss": 8.000000000000002}, "curve, step 1"), ("norm", {"norm": 1.5000000000000002}, "curve"),
                                    ("weight", {"weight": 0.25000003}, "state, step-2: 1 of 1 tensors, model.weight")):
            self.assertIn(part, same_bits.first_difference(old, self.result(name, **changes)), name)

    def test_only_the_resumed_half_differs(self):
        found = same_bits.first_difference(self.result("a"), self.result("b", norm="(3 if first else 1.5)"))
        self.assertIn("resumed curve, step 3", found)

    def test_a_failure_is_no_equality(self):
        old, new = self.result("a"), self.result("b", fails=True)
        self.assertIn("old: succeeded; new: exit code 1: no such thing", same_bits.first_difference(old, new))
        self.assertIn("exit code 1", same_bits.first_difference(new, new))
        self.assertIn("no losses", same_bits.first_difference({"curve": {}, "state": {}}, {"curve": {}, "state": {}}))

    def test_jobs_name_recipes_that_exist(self):
        self.assertGreaterEqual(len(same_bits.JOBS), 20)
        for recipe, _, _ in same_bits.JOBS.values():
            self.assertTrue((SOURCE / f"train_configs/{recipe}.toml").exists(), recipe)
        self.assertLessEqual(set(same_bits.RESUMED), set(same_bits.JOBS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
