"""The model gpt_oss: every layout against one rank in float64, with windows that reach over the cuts of context parallelism and sinks
that tensor parallelism deals with the heads; greedy ids of transformers; experts as MXFP4 blocks."""

import functools
import json
import os
import pathlib
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy
import torch
import transformers
from transformers import GptOssConfig, GptOssForCausalLM

from generate_test import NEW, VOCAB, GenerateCase, greedy, prompts_of, saved
from harness import Case, main, metrics, thorough, titan
from scored_texts import assert_scores_equal_transformers

transformers.utils.logging.disable_progress_bar()

SIZES = ["--model.dim", 64, "--model.n_layers", 3, "--model.n_heads", 4, "--model.n_kv_heads", 2, "--model.head_dim", 16,
         "--model.moe_hidden_dim", 32, "--model.sliding_window_size", 20, "--model.original_seq_len", 32]
RECIPE = ["--job.config_file", "train_configs/gpt_oss_debug.toml", *SIZES, "--training.dtype", "float64",
          "--training.seq_len", "64", "--training.local_batch_size", "2", "--training.global_batch_size", "8",
          "--training.steps", "5", "--lr_scheduler.warmup_steps", "0", "--lr_scheduler.decay_ratio", "0.0",
          "--metrics.no_enable_tensorboard", "--metrics.loggers", "console,jsonl", "--debug.fingerprints", "--debug.deterministic"]


def degrees(**axes):
    return [word for axis, degree in axes.items() for word in (f"--parallelism.{axis}_degree", degree)]


def curves(out, ranks, *arguments):
    launch = ["launch", "--nproc", ranks, "--"] if ranks > 1 else []
    run = titan(*launch, "train", *RECIPE, "--job.dump_folder", out, *arguments)
    assert run.returncode == 0, run.stderr
    return ([[line[tag] for line in metrics(out) if tag in line] for tag in ("loss_metrics/global_avg_loss", "grad_norm")],
            (out / "fingerprints.jsonl").read_text())


@functools.cache
def alone(*arguments):
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        return curves(pathlib.Path(folder), 1, *arguments)


class LayoutTest(Case):
    def assert_equals_one_rank(self, ranks, *arguments, model=()):
        values, prints = curves(self.folder / "_".join(map(str, [ranks, *arguments[1::2]])), ranks, *model, *arguments)
        expected, expected_prints = alone(*model)
        self.assertEqual(prints, expected_prints, "initial weights or tokens")
        self.assertEqual(len(values[0]), 5)
        numpy.testing.assert_allclose(values, expected, rtol=1e-9)

    def test_fsdp_tensor_and_expert_parallelism(self):
        self.assert_equals_one_rank(4, *degrees(data_parallel_shard=2, tensor_parallel=2, expert_parallel=2))

    @thorough
    def test_every_other_layout(self):
        for ranks, axes in ((2, {"data_parallel_shard": -1}), (2, {"data_parallel_shard": 1, "tensor_parallel": 2}),
                            (2, {"data_parallel_shard": 1, "pipeline_parallel": 2}),
                            (2, {"data_parallel_shard": 1, "context_parallel": 2}),
                            (2, {"data_parallel_shard": -1, "expert_parallel": 2})):
            with self.subTest(ranks=ranks, **axes):
                self.assert_equals_one_rank(ranks, *degrees(**axes))

    @thorough
    def test_documents_and_blocks_that_run_again(self):
        documents = ["--model.attn_type", "flex"]
        self.assert_equals_one_rank(2, *degrees(data_parallel_shard=1, context_parallel=2), model=documents)
        self.assertNotEqual(alone(*documents)[0], alone()[0])
        for mode in (["full"], ["selective", "--activation_checkpoint.selective_ac_option", "op"]):
            self.assert_equals_one_rank(1, "--activation_checkpoint.mode", *mode)

    def test_other_windows_give_other_losses(self):
        self.assertGreater(abs(numpy.subtract(alone("--model.sliding_window_size", "19")[0], alone()[0])).max(), 1e-6)


class GreedyTest(GenerateCase):
    """Prompts shorter and longer than the window."""

    PROMPTS = prompts_of(5, 1, 23, 40, 2)

    def test_equals_transformers(self):
        torch.manual_seed(5)
        model = saved(GptOssForCausalLM(GptOssConfig(
            hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=32, vocab_size=VOCAB,
            num_local_experts=8, num_experts_per_tok=3, intermediate_size=48, sliding_window=16, max_position_embeddings=512,
            rope_parameters={"rope_type": "yarn", "rope_theta": 150000.0, "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0,
                             "truncate": False, "original_max_position_embeddings": 64},
            attn_implementation="eager", experts_implementation="eager", bos_token_id=2046, eos_token_id=2047)).eval(),
            self.folder / "hf")
        expected = [greedy(model, prompt) for prompt in self.PROMPTS]
        for flags, ranks in (([], 1), (["--no-cache"], 1), (["--parallelism.tensor_parallel_degree", 2], 2)):
            with self.subTest(flags=flags):
                lines = self.generate(self.folder / "hf", "--prompts", self.prompts_file(self.PROMPTS), "--max-new-tokens", NEW,
                                      "--json", "--ignore-eos", *flags, ranks=ranks)
                self.assertEqual([line["ids"] for line in lines], expected)
        assert_scores_equal_transformers(self, model, self.folder / "hf", (1, []), (2, degrees(tensor_parallel=2)))


if __name__ == "__main__":
    main()
