"""The model gpt_oss: every layout compared with one rank in float64, with windows that span ranks of context
parallelism and sinks that tensor parallelism shards with the heads; greedy ids of transformers; experts as MXFP4
blocks."""


import before_transformers

import numpy
import torch
import transformers
from transformers import GptOssConfig, GptOssForCausalLM

import layout_case
from generate_test import NEW, VOCAB, GenerateCase, greedy, prompts_of, saved
from harness import main
from layout_case import degrees
from scored_texts import assert_scores_equal_transformers

transformers.utils.logging.disable_progress_bar()

SIZES = ["--model.dim", 64, "--model.n_layers", 3, "--model.n_heads", 4, "--model.n_kv_heads", 2, "--model.head_dim", 16,
         "--model.moe_hidden_dim", 32, "--model.sliding_window_size", 20, "--model.original_seq_len", 32]

class LayoutTest(layout_case.LayoutCase):
    RECIPE = ["--job.config_file", "train_configs/gpt_oss_debug.toml", *SIZES, *layout_case.SHORT]

    def test_other_windows_give_other_losses(self):
        other = self.losses_of_one_rank("--model.sliding_window_size", "19")
        self.assertGreater(abs(numpy.subtract(other, self.losses_of_one_rank())).max(), 1e-6)


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
