"""[loss]: cross_entropy with label smoothing, z-loss and a soft cap equals torch's result for the same weights and tokens, the same
under every layout, and validation reports the same loss."""

import functools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import HANG, ROOT, Case, TITAN, main, metrics, titan

ROWS, SEQ_LEN, STEPS = 4, 64, 3
CORPUS, TOKENIZER = ROOT / "tests/assets/corpus/train.jsonl", ROOT / "tests/assets/tokenizer"
OPTIONS = {"label_smoothing": 0.1, "z_loss": 1e-3, "logit_softcap": 5.0}
LOSS = ["--loss.name", "cross_entropy", *(text for name, value in OPTIONS.items() for text in (f"--loss.{name}", str(value)))]
MODEL = ["--job.config_file", "train_configs/debug_model.toml", "--model.dim", "64", "--model.n_layers", "2", "--model.n_heads", "4",
         "--model.n_kv_heads", "2", "--model.multiple_of", "64", "--training.seq_len", str(SEQ_LEN), "--training.steps", str(STEPS),
         "--training.local_batch_size", "1", "--training.global_batch_size", str(ROWS), "--metrics.log_freq", "1",
         "--metrics.no_enable_tensorboard", "--lr_scheduler.warmup_steps", "2", "--lr_scheduler.decay_ratio", "0", "--debug.seed", "7",
         "--debug.deterministic"]
WIDE = ["--training.dtype", "float64"]
STILL = ["--optimizer.lr", "1e-30"]
VALIDATION = ["--validation.enable", "--validation.dataset", "jsonl", "--validation.dataset_path",
              str(ROOT / "tests/assets/corpus/train.jsonl"), "--validation.freq", "3", "--validation.steps", "2", "--validation.seq_len",
              str(SEQ_LEN), "--validation.local_batch_size", "2"]
CURVES = ("loss_metrics/global_avg_loss", "loss_metrics/nll", "loss_metrics/z_loss", "grad_norm")


def train(out, ranks, *arguments):
    launch = ["launch", "--nproc", str(ranks), "--"] if ranks > 1 else []
    return titan(*launch, "train", *MODEL, "--job.dump_folder", out, *arguments)


def curves(out):
    lines = [line for line in metrics(out) if CURVES[0] in line]
    return {name: [line.get(name) for line in lines] for name in CURVES}


@functools.cache
def alone():
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        run = train(folder, 1, *LOSS, *WIDE)
        assert run.returncode == 0, run.stderr
        return curves(pathlib.Path(folder))


class LossTest(Case):
    def run_it(self, ranks, *arguments, name="run"):
        out = self.folder / name
        run = train(out, ranks, *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return out, run

    def test_equals_torch(self):
        """Loss, its parts and the norm of the gradients of the first step."""
        out, _ = self.run_it(1, *LOSS, *STILL, "--training.max_norm", "1e9", "--checkpoint.enable", "--checkpoint.interval", STEPS)
        export = self.folder / "export"
        run = titan("convert", "to-hf", out / f"checkpoint/step-{STEPS}", export)
        self.assertEqual(run.returncode, 0, run.stderr)
        referee = subprocess.run([sys.executable, ROOT / "tests/referee/loss_referee.py", export, CORPUS, TOKENIZER, str(ROWS),
                                  str(SEQ_LEN), json.dumps(OPTIONS)], capture_output=True, text=True, timeout=HANG)
        self.assertEqual(referee.returncode, 0, referee.stderr)
        expected = json.loads(referee.stdout)
        found = curves(out)
        self.assertGreater(abs(expected["loss"] - expected["nll"]), 1e-2)  # an ignored option would show
        for tag, name in zip(CURVES, ("loss", "nll", "z_loss", "norm"), strict=True):
            self.assertLess(abs(found[tag][0] / expected[name] - 1), 2e-5, f"{tag}: {found[tag][0]} for {expected[name]}")

    def test_layouts_agree(self):
        for name, ranks, arguments in (
                ("tp", 2, ["--parallelism.tensor_parallel_degree", "2"]),
                ("tp_whole", 2, ["--parallelism.tensor_parallel_degree", "2", "--parallelism.disable_loss_parallel"]),
                ("pp", 2, ["--parallelism.pipeline_parallel_degree", "2", "--training.local_batch_size", "2"]),
                ("fsdp", 2, ["--parallelism.data_parallel_shard_degree", "2"]),
                ("cp", 2, ["--parallelism.context_parallel_degree", "2"]),
                ("full", 1, ["--activation_checkpoint.mode", "full"])):
            with self.subTest(name):
                out, _ = self.run_it(ranks, *LOSS, *WIDE, *arguments, name=name)
                found = curves(out)
                for tag, values in alone().items():
                    for value, expected in zip(found[tag], values, strict=True):
                        self.assertLess(abs(value / expected - 1), 1e-9, tag)

    def test_float16_scales_its_gradients(self):
        out, run = self.run_it(1, *LOSS, "--training.mixed_precision_param", "float16")
        exact = alone()["loss_metrics/global_avg_loss"]
        for value, expected in zip(curves(out)["loss_metrics/global_avg_loss"], exact, strict=True):
            self.assertLess(abs(value - expected), 0.02)

    def test_validation_says_what_it_reports(self):
        out, run = self.run_it(1, *LOSS, *VALIDATION)
        self.assert_holds(run.stderr, "validation reports loss 'cross_entropy'; perplexity is that of its part 'nll'")
        lines = [line for line in metrics(out) if "validation_metrics/loss" in line]
        self.assertEqual([line["step"] for line in lines], [1, 3])
        for line in lines:
            nll = line["validation_metrics/nll"]
            self.assertAlmostEqual(line["validation_metrics/perplexity"], math.exp(nll), delta=1e-9 * math.exp(nll))
            self.assertGreater(abs(line["validation_metrics/loss"] - nll), 1e-3)
            self.assertGreater(line["validation_metrics/bits_per_byte"], 0)
        pp, _ = self.run_it(2, *LOSS, *VALIDATION, "--parallelism.pipeline_parallel_degree", "2", "--training.local_batch_size", "2",
                            name="pp")
        for line, other in zip(lines, [line for line in metrics(pp) if "validation_metrics/loss" in line], strict=True):
            self.assertAlmostEqual(line["validation_metrics/nll"], other["validation_metrics/nll"], delta=1e-4)

    def test_without_a_name_nothing_of_it_is_there(self):
        out, run = self.run_it(1, *VALIDATION)
        self.assertEqual(set(curves(out)["loss_metrics/nll"]), {None})
        self.assertNotIn("validation reports", run.stderr)
        plain, _ = self.run_it(1, "--loss.name", "cross_entropy", name="plain")
        for value, expected in zip(curves(plain)["loss_metrics/global_avg_loss"], curves(out)["loss_metrics/global_avg_loss"],
                                   strict=True):
            self.assertLess(abs(value / expected - 1), 1e-5)

    def test_what_is_wrong_is_found_before_the_start(self):
        for arguments, texts in ((["--loss.name", "cross_entropi"], ["unknown loss 'cross_entropi'", "did you mean 'cross_entropy'?"]),
                                 (["--loss.name", "cross_entropy", "--loss.label_smoothing", "1"], ["label_smoothing", "must be >= 0 and < 1"]),
                                 (["--loss.z_loss", "1e-4"], ["loss.z_loss"])):
            run = train(self.out, 1, *arguments)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, *texts)
        self.assert_nothing_was_written()

    def test_played_ranks_hold_its_memory(self):
        def most(*arguments):
            run = train(self.out, 1, "--comm.mode", "fake_backend", "--world-size", "4", "--parallelism.tensor_parallel_degree", "2",
                        *arguments)
            self.assertEqual(run.returncode, 0, run.stderr)
            line = next(line for line in run.stdout.splitlines() if "most at once" in line)
            return int(line.split()[-2])

        self.assertGreater(most(*LOSS), most())
        run = train(self.out, 1, "--dry-run", *LOSS)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_resumed_run_says_that_its_loss_changes(self):
        saves = ["--checkpoint.enable", "--checkpoint.interval", "1", "--checkpoint.no_last_save_model_only", "--job.dump_folder",
                 str(self.folder / "saved")]
        changed = "the run continues with another loss than"
        _, run = self.run_it(1, *LOSS, *saves, "--training.steps", "1")
        self.assertNotIn(changed, run.stderr)
        _, run = self.run_it(1, *LOSS, *saves, "--training.steps", "2", "--loss.z_loss", "0.002")
        self.assert_holds(run.stderr, changed, "loss.z_loss is 0.001 there and 0.002 here")
        _, run = self.run_it(1, *saves, "--training.steps", "3")
        self.assert_holds(run.stderr, changed, 'loss.name is "cross_entropy" there and not set here')


if __name__ == "__main__":
    assert os.access(TITAN, os.X_OK), TITAN
    main()
