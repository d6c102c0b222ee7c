#!/usr/bin/env python3
"""tools/gpu_prediction.py: its FLOPs equal titan's, its bytes those computed by hand, and a faster card is never
slower."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
TITAN = pathlib.Path(os.environ["TITAN_PROGRAM"])
sys.path.insert(0, str(SOURCE / "tools"))
import gpu_prediction as prediction  # noqa: E402

CARD = prediction.CARDS["H100"]
JOB = prediction.Job(prediction.MODELS["8B"], seq_len=4096)
SMALL = prediction.Job(prediction.MODELS["1B"], seq_len=8192)
TENSORWISE, ROWWISE = (dataclasses.replace(JOB, recipe=recipe) for recipe in ("tensorwise", "rowwise"))
JOBS = [prediction.Job(model, 4096, batch, recipe, weights, recompute, compiled)
        for model in prediction.MODELS.values() for batch in (1, 2) for recipe in ("bf16", "tensorwise", "rowwise")
        for weights in ("float32", "bfloat16") for recompute in ("none", "selective", "full") for compiled in (False, True)]


def one(job, phase, name):
    found, = [operation for operation in prediction.operations(job) if (operation.phase, operation.name) == (phase, name)]
    return found


class GpuPrediction(unittest.TestCase):

    def test_parameters_and_flops_of_the_models(self):
        # Meta's numbers of parameters; 6 FLOPs for each weight except the embedding, 12 times layers, width and
        # context length
        self.assertEqual(prediction.MODELS["8B"].parameters(), 8_030_261_248)
        self.assertEqual(prediction.MODELS["1B"].parameters(), 1_235_814_400)
        pairs = 12 * 32 * 4096 * 4096
        multiplied = 6 * (8_030_261_248 - 128256 * 4096)
        self.assertEqual(prediction.MODELS["8B"].flops_per_token(4096), (multiplied + pairs, multiplied + pairs / 2))

    @unittest.skipUnless(TITAN.exists(), "titan is not built")
    def test_flops_are_those_of_titan_estimate(self):
        for config, name in (("llama3_8b", "8B"), ("llama3_2_1b", "1B")):
            words = [TITAN, "estimate", "--job.config_file", SOURCE / f"train_configs/{config}.toml", "--ranks", "1",
                     "--training.seq_len", "4096", "--json"]
            run = subprocess.run(words, cwd=SOURCE, text=True, capture_output=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            estimate = json.loads(run.stdout)
            full, half = prediction.MODELS[name].flops_per_token(4096)
            self.assertEqual(estimate["num_parameters"], prediction.MODELS[name].parameters())
            self.assertEqual(estimate["flops_per_token"], {"full_attention": full, "causal_half": half})

    def test_the_operations_add_up_to_the_flops_of_the_model(self):
        norms = 6 * (2 * 32 + 1) * 4096 * 4096  # the convention counts their weights
        for recipe in ("bf16", "tensorwise", "rowwise"):
            for compiled in (False, True):
                job = dataclasses.replace(JOB, recipe=recipe, compiled=compiled)
                found = prediction.predict(job, CARD)
                # flash attention recomputes the scores in its backward: 2.5 times its forward instead of 2
                again = 0.5 * 32 * 4 * 4096 * 4096 * 4096 / 2
                done = sum(row["flops"] for row in found["operations"])
                self.assertAlmostEqual((done - again + norms) / found["flops_per_step"]["causal_half"], 1, places=9)

    def test_bytes_of_operations_computed_by_hand(self):
        for job, phase, name, count, moved in [
                (JOB, "forward", "swiglu", 32, 3 * 2 * 4096 * 14336),
                (JOB, "backward", "swiglu", 32, 5 * 2 * 4096 * 14336),
                (JOB, "forward", "w1", 32, 2 * (4096 * 4096 + 4096 * 14336 + 4096 * 14336)),
                (JOB, "forward", "rope", 32, 2 * 2 * 4096 * (32 + 8) * 128),
                (JOB, "forward", "attention_norm", 32, 2 * 2 * 4096 * 4096 + 4 * 4096),
                (JOB, "backward", "attention", 32, 4 * 2 * 4096 * (4096 + 1024)),
                (JOB, "backward", "attention_norm", 32, 3 * 2 * 4096 * 4096 + 2 * 4 * 512 * 4096),
                (JOB, "forward", "head: cross entropy", 1, 3 * 2 * 4096 * 128256),
                (JOB, "forward", "head: gradient of the weight", 1, 2 * (4096 * 128256 + 4096 * 4096 + 128256 * 4096)),
                (SMALL, "forward", "head: cross entropy", 4, 3 * 2 * 2048 * 128256),
                (SMALL, "forward", "head: gradient of the weight", 1, 2 * 2048 * (128256 + 2048) + 4 * 128256 * 2048),
                (SMALL, "forward", "head: gradient of the weight, added up", 3,
                 2 * 2048 * (128256 + 2048) + 8 * 128256 * 2048),
                (JOB, "update", "AdamW", 1, 28 * 8_030_261_248),
                (JOB, "update", "gradient norm", 1, 4 * 8_030_261_248),
                (dataclasses.replace(JOB, compiled=True), "backward", "swiglu", 32, 6 * 2 * 4096 * 14336),
                (dataclasses.replace(JOB, compiled=True), "backward", "rope", 32, 2 * 2 * 4096 * (32 + 8) * 128),
                (dataclasses.replace(JOB, weights="bfloat16"), "update", "AdamW", 1, 14 * 8_030_261_248),
                (TENSORWISE, "forward", "w2: float8 with one scale", 32, 5 * 4096 * 14336),
                (TENSORWISE, "forward", "w2: weight to float8", 32, 3 * 4096 * 14336),
                (TENSORWISE, "backward", "w2: gradient of the weight, input: float8 with one scale, transposed", 32,
                 5 * 4096 * 14336),
                (ROWWISE, "forward", "w2: float8 by row", 32, 3 * 4096 * 14336),
                (ROWWISE, "backward", "w2: gradient of the input, weight: float8 by column", 32, 5 * 4096 * 14336),
                (ROWWISE, "backward", "w2: gradient of the weight", 32, 4096 * 4096 + 4096 * 14336 + 2 * 4096 * 14336)]:
            operation = one(job, phase, name)
            self.assertEqual((operation.count, operation.bytes), (count, moved), name)

    def test_the_chunks_of_the_head_are_those_of_the_kernel(self):
        for rows, words, dim, expected in [(4096, 128256, 4096, 4096), (8192, 128256, 4096, 8192), (8193, 128256, 4096, 2049),
                                           (8192, 128256, 2048, 2048), (4097, 128256, 2048, 2049), (9000, 32000, 2048, 4500),
                                           (1100, 600_000, 512, 367), (100, 32000, 2048, 100)]:
            self.assertEqual(prediction.chunk_rows(rows, words, dim), expected)

    def test_every_kind_of_operation_has_a_share_and_every_share_an_operation(self):
        short = dataclasses.replace(JOB, seq_len=500)  # attention by flash
        kinds = {operation.kind for job in [*JOBS, short] for operation in prediction.operations(job)}
        self.assertEqual(kinds, set(prediction.EFFICIENCY))
        self.assertLessEqual(max(prediction.EFFICIENCY.values()), 1)

    def test_steps_measured_on_an_h200(self):
        copies = dict(prediction.EFFICIENCY, **{"copy to fp32": 0.45})  # by Tensor.copy_, when these were measured
        for job, milliseconds in [(JOB, 436), (SMALL, 162), (dataclasses.replace(SMALL, recipe="tensorwise"), 153),
                                  (dataclasses.replace(SMALL, recipe="rowwise"), 152)]:
            step = prediction.predict(job, prediction.CARDS["H200"], copies)["step_seconds"] * 1e3
            self.assertAlmostEqual(step / milliseconds, 1, delta=0.06, msg=(job, step))

    def test_a_faster_card_never_makes_a_step_slower(self):
        for job in JOBS:
            before = prediction.predict(job, CARD)
            self.assertGreaterEqual(before["device_seconds"], before["ceiling_seconds"])
            for field, value in CARD._asdict().items():
                after = prediction.predict(job, CARD._replace(**{field: 2 * value}))
                self.assertLessEqual(after["step_seconds"], before["step_seconds"], (job, field))

    def test_recomputation_costs_time_and_keeps_the_rest(self):
        seconds = [prediction.predict(dataclasses.replace(JOB, recompute=mode), CARD)["device_seconds"]
                   for mode in ("none", "selective", "full")]
        self.assertEqual(seconds, sorted(seconds))
        self.assertLess(seconds[0], seconds[1])

    def test_the_program_writes_tables_and_json(self):
        with tempfile.TemporaryDirectory() as folder:
            written = pathlib.Path(folder) / "prediction.json"
            run = subprocess.run([SOURCE / "tools/gpu_prediction.py", "--model", "8B", "--card", "H200", "--recipe", "bf16",
                                  "--bandwidth", "1e12", "--no-estimate", "--json", written], text=True, capture_output=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            found = json.loads(written.read_text())
        self.assertEqual((found["schema"], found["predictions"][0]["card"]["bandwidth"]), (1, 1e12))
        self.assertIn("| AdamW | update | 1 | 224.85 |", run.stdout)


if __name__ == "__main__":
    unittest.main()
