"""Compares a model with experts under layouts of ranks with one rank, in float64. A model's test derives from LayoutCase, names the recipe
and special options, and inherits the layouts. (Import the module, not the class, which is itself a test.)"""

import functools
import pathlib
import tempfile

import numpy

from harness import Case, metrics, thorough, titan

STEPS = 5
SHORT = ["--training.seq_len", "64", "--training.local_batch_size", "2", "--training.global_batch_size", "8", "--training.steps", STEPS,
         "--lr_scheduler.warmup_steps", "0", "--lr_scheduler.decay_ratio", "0.0", "--metrics.no_enable_tensorboard",
         "--metrics.loggers", "console,jsonl"]
DOUBLE = ["--training.dtype", "float64", "--debug.fingerprints", "--debug.deterministic"]
DOCUMENTS = ["--model.attn_type", "flex"]


def degrees(**axes):
    return [word for axis, degree in axes.items() for word in (f"--parallelism.{axis}_degree", degree)]


def train(recipe, out, ranks, *arguments):
    launch = ["launch", "--nproc", ranks, "--"] if ranks > 1 else []
    return titan(*launch, "train", *recipe, "--job.dump_folder", out, *arguments)


@functools.cache
def of_one_rank(case, *arguments):
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        return case.curves(pathlib.Path(folder), 1, *arguments)


class LayoutCase(Case):
    RECIPE = ()  # arguments of all runs
    MODEL = ()  # options of the model under test
    MORE_LAYOUTS = ()  # more layouts: (ranks, arguments)

    @classmethod
    def curves(cls, out, ranks, *arguments):
        """Losses and norms by step, hashes of the initial weights and of each step's tokens, and `further`."""
        run = train(cls.RECIPE, out, ranks, *DOUBLE, *arguments)
        assert run.returncode == 0, run.stderr
        return ([[line[tag] for line in metrics(out) if tag in line] for tag in ("loss_metrics/global_avg_loss", "grad_norm")],
                (out / "fingerprints.jsonl").read_text(), cls.further(out))

    @classmethod
    def further(cls, out):
        """Further results of a run that must equal those of one rank; assert_further compares them."""
        return None

    def assert_further(self, found, expected):
        pass

    def losses_of_one_rank(self, *arguments):
        return of_one_rank(type(self), *arguments)[0]

    def assert_equals_one_rank(self, ranks, *arguments, model=None):
        model = self.MODEL if model is None else model
        values, prints, further = self.curves(pathlib.Path(tempfile.mkdtemp(prefix=f"run_{ranks}_", dir=self.folder)), ranks, *model, *arguments)
        expected, expected_prints, expected_further = of_one_rank(type(self), *model)
        self.assertEqual(prints, expected_prints, "initial weights or tokens")
        self.assertEqual(len(values[0]), STEPS)
        numpy.testing.assert_allclose(values, expected, rtol=1e-9)
        self.assert_further(further, expected_further)

    def test_fsdp_tensor_and_expert_parallelism(self):
        self.assert_equals_one_rank(4, *degrees(data_parallel_shard=2, tensor_parallel=2, expert_parallel=2))

    @thorough
    def test_every_other_layout(self):
        for ranks, arguments in ((2, degrees(data_parallel_shard=-1)),
                                 (2, degrees(data_parallel_shard=1, tensor_parallel=2)),
                                 (2, degrees(data_parallel_shard=1, pipeline_parallel=2)),
                                 (2, degrees(data_parallel_shard=1, context_parallel=2)),
                                 (2, degrees(data_parallel_shard=-1, expert_parallel=2)), *self.MORE_LAYOUTS):
            with self.subTest(ranks=ranks, arguments=arguments):
                self.assert_equals_one_rank(ranks, *arguments)

    @thorough
    def test_documents_and_blocks_that_run_again(self):
        documents = [*self.MODEL, *DOCUMENTS]
        self.assert_equals_one_rank(2, *degrees(data_parallel_shard=1, context_parallel=2), model=documents)
        self.assertNotEqual(self.losses_of_one_rank(*documents), self.losses_of_one_rank(*self.MODEL))
        for mode in (["full"], ["selective", "--activation_checkpoint.selective_ac_option", "op"]):
            self.assert_equals_one_rank(1, "--activation_checkpoint.mode", *mode)
