"""experiments/curriculum, built against an installation: the order of documents judged by NumPy's Mersenne Twister, resume in the middle of
a stage, and results.json."""

import json
import os
import pathlib
import subprocess
import sys

import numpy
from tokenizers import Tokenizer

from harness import ROOT, Case, losses, main
from installed import build_project, titan_installed, train_installed

RECIPE = "experiments/curriculum/train.toml"
CORPUS = ROOT / "tests/assets/corpus/train.jsonl"
STAGES = ["6000 jargon:0.75 devil:0.25", "4000 devil:1", "3000 jargon:0.5 devil:0.5"]
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "curriculum"
    PLUGINS = build_project(ROOT / "experiments/curriculum", build) / "lib/titan/plugins"


def expected_order(seed, order):
    """Texts in the order of the data set, stage by stage, written from its description; random numbers are NumPy's MT19937."""
    state = numpy.random.RandomState(seed)

    def shuffle(items):
        for i in range(len(items), 1, -1):
            j = int(state.randint(0, 2**32, dtype=numpy.uint32)) % i
            items[i - 1], items[j] = items[j], items[i - 1]

    sources = {}
    for line in CORPUS.read_text().splitlines():
        document = json.loads(line)
        sources.setdefault(document["source"], []).append(document["text"])
    for name in sorted(sources):
        shuffle(sources[name])
    stages = []
    for text in STAGES:
        limit, *shares = text.split()
        weights = {share.split(":")[0]: float(share.split(":")[1]) for share in shares}
        taken, stage = dict.fromkeys(weights, 0), []
        while sum(taken.values()) < int(limit):
            name = min(weights, key=lambda source: taken[source] / weights[source])
            stage.append(sources[name].pop(0))
            taken[name] += len(stage[-1].encode())
        stages.append(stage)
    texts = [text for stage in (stages[::-1] if order == "reversed" else stages) for text in stage]
    if order == "mixed":
        shuffle(texts)
    return texts


class CurriculumTest(Case):
    def flags(self, *arguments):
        return ["--job.config_file", RECIPE, "--plugins.paths", PLUGINS, "--dataset.maintainers/stages.stages", ",".join(STAGES), *arguments]

    def test_documents_come_in_the_order_of_the_stages(self):
        tokenizer = Tokenizer.from_file(str(ROOT / "tests/assets/tokenizer/tokenizer.json"))
        special = {token.content: number for number, token in tokenizer.get_added_tokens_decoder().items()}
        for seed, order in ((42, "as_listed"), (43, "as_listed"), (42, "reversed"), (42, "mixed")):
            with self.subTest(order, seed=seed):
                out = self.folder / f"{order}_{seed}"
                run = titan_installed("tokenize", "--out", out, *self.flags("--dataset.maintainers/stages.order", order, "--debug.seed", seed))
                self.assertEqual(run.returncode, 0, run.stderr)
                found = numpy.fromfile(out.with_suffix(".bin"), "<u2").tolist()
                expected = [token for text in expected_order(seed, order)
                            for token in [special["<|begin_of_text|>"], *tokenizer.encode(text, add_special_tokens=False).ids,
                                          special["<|end_of_text|>"]]]
                self.assertEqual(found, expected)

    def test_a_run_that_stops_within_a_stage_equals_one_in_one_piece(self):
        """A stage ends within step 9: 6,000 bytes are about 2,100 tokens."""
        def run(out, steps, ranks=1):
            done = train_installed(ranks, *self.flags("--job.dump_folder", out, "--training.steps", steps, "--training.global_batch_size", "4",
                                                      "--training.local_batch_size", "2", "--lr_scheduler.warmup_steps", "0",
                                                      "--lr_scheduler.decay_ratio", "0", "--checkpoint.enable", "--checkpoint.interval", "100",
                                                      "--checkpoint.no_last_save_model_only", "--debug.deterministic"))
            self.assertEqual(done.returncode, 0, done.stderr)
            return losses(out)

        straight = run(self.folder / "straight", 14)
        run(self.folder / "parts", 5)
        run(self.folder / "parts", 10)
        self.assertEqual(run(self.folder / "parts", 14), straight)
        for path in sorted((self.folder / "straight/checkpoint/step-14").glob("*.safetensors")):
            self.assertEqual(path.read_bytes(), (self.folder / "parts/checkpoint/step-14" / path.name).read_bytes(), path)
        # more ranks read the same tokens
        run(self.folder / "ranks", 5, ranks=2)
        numpy.testing.assert_allclose(run(self.folder / "ranks", 14), straight, rtol=1e-4)

    def test_other_stages_are_refused_on_resume(self):
        flags = ["--job.dump_folder", self.out, "--checkpoint.enable", "--checkpoint.no_last_save_model_only"]
        first = train_installed(1, *self.flags(*flags, "--training.steps", "2"))
        self.assertEqual(first.returncode, 0, first.stderr)
        other = train_installed(1, *self.flags(*flags, "--training.steps", "4", "--dataset.maintainers/stages.order", "reversed"))
        self.assertNotEqual(other.returncode, 0)
        self.assert_holds(other.stderr, "maintainers/stages")

    def test_invalid_stages_are_refused_with_the_reason(self):
        for stages, text in (("", "stages is empty"), ("jargon:1", "a stage is a number of bytes"), ("100 jargon:0", "a stage is a number of bytes"),
                             ("100 slang:1", "names the source 'slang'"), ("900000 devil:1", "takes more documents of the source 'devil' than its 806")):
            with self.subTest(stages):
                run = train_installed(1, *self.flags("--job.dump_folder", self.out, "--dataset.maintainers/stages.stages", stages))
                self.assertNotEqual(run.returncode, 0)
                self.assert_holds(run.stderr, text)

    def test_readme_and_figures_are_those_of_the_records(self):
        subprocess.run([sys.executable, ROOT / "experiments/curriculum/run.py", "--check"], check=True)


if __name__ == "__main__":
    main()
