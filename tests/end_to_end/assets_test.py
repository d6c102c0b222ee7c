"""This version still reads files of Titan 0.1 (tests/assets/v0.1, made once by tests/assets/make_v0_1.py): checkpoints
resume, each in its own layout and on one rank; every file of a run's folder can be read; other software agrees."""

import gzip
import json
import pathlib
import pickle
import shutil
import sys

import numpy
import safetensors.numpy
import tokenizers

from harness import ROOT, Case, losses, main, metrics, titan

ASSETS = ROOT / "tests/assets/v0.1"
sys.path.insert(0, str(ASSETS.parent))
from jobs_v0_1 import CHECKPOINTS, SAVED, STEPS  # noqa: E402

EXPECTED = json.loads((ASSETS / "expected.json").read_text())
RUN = ASSETS / "run"


class AssetsTest(Case):
    def read_only(self, name):
        """A copy, because a reader may write into its folder, and stored files must not change."""
        return pathlib.Path(shutil.copytree(ASSETS / name, self.folder / name))

    def resume(self, name, ranks, *arguments):
        """Resumes from the stored checkpoint; returns the losses of the later steps."""
        out = self.folder / f"{name} {ranks}"
        shutil.copytree(ASSETS / name, out / "checkpoint")
        launch = ["launch", "--nproc", ranks, "--"] if ranks > 1 else []
        run = titan(*launch, "train", *arguments, "--job.dump_folder", out)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"step {SAVED}", run.stderr + run.stdout)
        steps = {line["step"]: line for line in metrics(out)}
        self.assertNotIn(SAVED, steps, "the run started from scratch")
        return {str(step): steps[step]["loss_metrics/global_avg_loss"] for step in range(SAVED + 1, STEPS + 1)}

    def test_checkpoints_go_on_in_their_layout_and_on_one_rank(self):
        for name, (arguments, ranks, layout) in CHECKPOINTS.items():
            expected = EXPECTED["losses"][name]
            for on, words in {1: arguments, ranks: [*arguments, *layout]}.items():
                with self.subTest(checkpoint=name, ranks=on):
                    found = self.resume(name, on, *words)
                    self.assertEqual(set(found), set(expected))
                    for step, loss in expected.items():
                        # other CPUs add in another order
                        self.assertAlmostEqual(found[step], loss, delta=2e-5 * loss)

    def test_checkpoints_are_whole_and_safetensors_reads_them(self):
        for name in CHECKPOINTS:
            folder = self.read_only(name) / f"step-{SAVED}"
            run = titan("inspect", folder, "--verify", "--json")
            self.assertEqual(run.returncode, 0, run.stderr)
            described = json.loads(run.stdout)
            self.assertEqual(described["manifest"]["step"], SAVED)
            values = [tensor for path in folder.glob("*.safetensors") for tensor in safetensors.numpy.load_file(path).values()]
            self.assertGreater(len(values), 20)
            self.assertTrue(all(numpy.isfinite(tensor).all() for tensor in values if tensor.dtype.kind == "f"))

    def test_a_byte_that_changed_is_found(self):
        folder = self.read_only("dense") / f"step-{SAVED}"
        path = folder / "weights-rank-00001.safetensors"
        content = bytearray(path.read_bytes())
        content[-5] ^= 1
        path.write_bytes(content)
        run = titan("inspect", folder, "--verify")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn(path.name, run.stdout + run.stderr)

    def test_a_plugin_of_0_1_is_loaded_or_refused_by_name(self):
        plugin = ASSETS / "constant.plugin.so"  # made by make_plugin_v0_1.py
        run, listed = titan("check", plugin), titan("list", "lr_scheduler", "--path", ASSETS)
        if run.returncode == 0:
            self.assertIn("Constant", listed.stdout)
            return
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assert_holds(run.stderr, f"cannot use plugin 'constant' from {plugin}", "sdk_abi     678f2cb38e19225a",
                          "rebuild it against this installation", "cmake -S <plugin source>")
        self.assert_holds(listed.stdout, "unusable here", "cannot use plugin 'constant'", "sdk_abi 678f2cb38e19225a instead of")

    def test_every_file_of_a_run_has_its_reader(self):
        run = self.read_only("run")
        read = titan("compare", run, run, "--json")
        self.assertEqual(read.returncode, 0, read.stderr)
        read = titan("report", run, "--out", self.folder / "report.html")
        self.assertEqual(read.returncode, 0, read.stderr)
        self.assertIn("loss", (self.folder / "report.html").read_text())
        read = titan("top", run, "--once")
        self.assertEqual(read.returncode, 0, read.stderr)
        self.assertIn("rank", read.stdout)
        read = titan("flight", run / "comm_traces", "--json")
        self.assertIn(read.returncode, (0, 1), read.stderr)
        self.assertTrue(json.loads(read.stdout))
        read = titan("trace", run / "profile_traces/iteration_4", "--output", self.folder / "all.json.gz")
        self.assertEqual(read.returncode, 0, read.stderr)
        with gzip.open(self.folder / "all.json.gz") as merged:
            self.assertGreater(len(json.load(merged)["traceEvents"]), 1000)
        # files that Titan writes and other software reads
        with open(run / "memory_snapshot/iteration_4/rank0_memory_snapshot.pickle", "rb") as snapshot:
            self.assertIn("device_traces", pickle.load(snapshot))
        steps = {line["step"] for line in map(json.loads, (run / "metrics_rank_0.jsonl").read_text().splitlines())}
        self.assertEqual(steps, set(range(1, STEPS + 1)))

    def test_the_resolved_configuration_trains_again(self):
        run = self.read_only("run")
        again = titan("train", "--job.config_file", run / "config.toml", "--job.dump_folder", self.out, "--checkpoint.no_enable",
                      "--profiling.no_enable_profiling", "--profiling.no_enable_memory_snapshot")
        self.assertEqual(again.returncode, 0, again.stderr)
        lines = [json.loads(line) for line in (self.out / "metrics_rank_0.jsonl").read_text().splitlines()]
        self.assertAlmostEqual(lines[-1]["loss_metrics/global_avg_loss"], EXPECTED["losses"]["dense"]["4"], delta=2e-4)

    def test_tokens_are_read_by_a_run_and_by_the_reference_tokenizer(self):
        count = 20
        index = (ASSETS / "tokens.idx").read_bytes()
        self.assertEqual(index[:9], b"MMIDIDX\0\0")
        sizes = numpy.frombuffer(index, "<i4", count, 34)
        tokens = numpy.fromfile(ASSETS / "tokens.bin", "<u2")
        self.assertEqual(sizes.sum(), len(tokens))
        reference = tokenizers.Tokenizer.from_file(str(ROOT / "tests/assets/tokenizer/tokenizer.json"))
        texts = [json.loads(line)["text"][:200] for line in
                 (ROOT / "tests/assets/corpus/validation.jsonl").read_text().splitlines()[:count]]
        for text, document in zip(texts, numpy.split(tokens, numpy.cumsum(sizes)[:-1])):
            self.assertEqual(reference.decode(document.tolist()), text)
        self.train("--training.dataset", "megatron", "--training.dataset_path", ASSETS / "tokens", "--training.local_batch_size", "1")
        self.assertEqual(len(losses(self.out)), 3)


if __name__ == "__main__":
    main()
