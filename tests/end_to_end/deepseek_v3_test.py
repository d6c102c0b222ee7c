"""The model deepseek_v3: every layout compared with one rank in float64, with latent attention and limited groups of experts; greedy
ids of transformers, from cached latents; import and export of transformers' weights, including float8 blocks."""

import json

import before_transformers

import numpy
import safetensors.torch
import torch
import transformers
from transformers import DeepseekV2Config, DeepseekV2ForCausalLM, DeepseekV3Config, DeepseekV3ForCausalLM

import layout_case
from generate_test import NEW, VOCAB, GenerateCase, greedy, prompts_of, saved
from harness import Case, main, thorough
from layout_case import degrees, train
from scored_texts import assert_scores_equal_transformers

transformers.utils.logging.disable_progress_bar()

EXPERTS = 8
SIZES = ["--model.dim", 64, "--model.inter_dim", 96, "--model.moe_inter_dim", 32, "--model.n_layers", 3, "--model.n_heads", 4,
         "--model.kv_lora_rank", 32, "--model.qk_nope_head_dim", 16, "--model.qk_rope_head_dim", 8, "--model.v_head_dim", 20,
         "--model.num_experts", EXPERTS, "--model.top_k", 2, "--model.yarn", "always", "--model.original_seq_len", 32]
V3 = ["--model.q_lora_rank", 24, "--model.num_shared_experts", 1, "--model.score_func", "sigmoid", "--model.route_norm",
      "--model.route_scale", 2.5, "--model.num_expert_groups", 4, "--model.num_limited_groups", 2, "--model.norm_eps", 1e-6]
RECIPE = ["--job.config_file", "train_configs/deepseek_v3_debug.toml", *SIZES, *layout_case.SHORT]


def weights_of(folder):
    found = {}
    for path in sorted(folder.rglob("*.safetensors")):
        found |= safetensors.torch.load_file(path)
    return found


class LayoutTest(layout_case.LayoutCase):
    RECIPE = [*RECIPE, "--checkpoint.enable", "--checkpoint.no_last_save_model_only"]
    MODEL = V3

    @classmethod
    def further(cls, out):
        weights = weights_of(out / f"checkpoint/step-{layout_case.STEPS}")
        return {name: value for name, value in weights.items() if name.endswith(".expert_bias")}

    def assert_further(self, found, expected):
        self.assertEqual(sorted(found), ["layers.1.moe.expert_bias", "layers.2.moe.expert_bias"])
        for name, value in expected.items():
            self.assertGreater(value.abs().max().item(), 5e-4, "it never moved")
            self.assertTrue(torch.equal(found[name], value), name)

    @thorough
    def test_tensor_parallelism_without_cut_sequences_and_of_a_deepseek_v2(self):
        one = degrees(data_parallel_shard=1, tensor_parallel=2)
        self.assert_equals_one_rank(2, *one, model=[])
        self.assert_equals_one_rank(2, *one, "--parallelism.tensor.no_sequence_parallel")

    def test_yarn_changes_losses_where_it_is_applied(self):
        off = self.losses_of_one_rank(*V3, "--model.yarn", "beyond_original", "--model.original_seq_len", 64)
        self.assertGreater(abs(numpy.subtract(off, self.losses_of_one_rank(*V3))).max(), 1e-6)
        self.assertEqual(off, self.losses_of_one_rank(*V3, "--model.rope_factor", 1.0))


COMMON = {"hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
          "num_key_value_heads": 4, "vocab_size": VOCAB, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
          "v_head_dim": 20, "n_routed_experts": EXPERTS, "num_experts_per_tok": 3, "max_position_embeddings": 512,
          "attn_implementation": "eager", "experts_implementation": "eager", "bos_token_id": 2046, "eos_token_id": 2047}
ROPE = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0,
        "mscale_all_dim": 1.0, "original_max_position_embeddings": 64}


def make_v3(folder):
    torch.manual_seed(5)
    model = DeepseekV3ForCausalLM(DeepseekV3Config(**COMMON, q_lora_rank=24, n_group=4, topk_group=2, first_k_dense_replace=1,
                                                   num_mtp_layers=0, rope_parameters=dict(ROPE))).eval()
    with torch.no_grad():
        for layer in model.model.layers[1:]:
            layer.mlp.gate.e_score_correction_bias.normal_(0, 0.1)
    return saved(model, folder)


def make_v2(folder):
    torch.manual_seed(6)
    return saved(DeepseekV2ForCausalLM(DeepseekV2Config(
        **COMMON, q_lora_rank=None, n_group=2, topk_group=1, topk_method="group_limited_greedy", routed_scaling_factor=4.0,
        first_k_dense_replace=2, rope_parameters=ROPE | {"mscale": 0.707, "mscale_all_dim": 0.707})).eval(), folder)


class GreedyTest(GenerateCase):
    PROMPTS = prompts_of(5, 1, 23, 40, 2)

    def test_equals_transformers(self):
        for make in (make_v3, make_v2):
            folder = self.folder / make.__name__
            model = make(folder)
            expected = [greedy(model, prompt) for prompt in self.PROMPTS]
            for flags, ranks in (([], 1), (["--no-cache"], 1), (["--batch-size", 2], 1),
                                 (["--parallelism.tensor_parallel_degree", 2], 2)):
                with self.subTest(model=make.__name__, flags=flags):
                    lines = self.generate(folder, "--prompts", self.prompts_file(self.PROMPTS), "--max-new-tokens", NEW, "--json",
                                          "--ignore-eos", *flags, ranks=ranks)
                    self.assertEqual([line["ids"] for line in lines], expected)
            with self.subTest(scored=make.__name__):
                both = degrees(tensor_parallel=2, expert_parallel=2)
                assert_scores_equal_transformers(self, model, folder, (1, []), *([(2, both)] if make is make_v3 else []))


class ExchangeTest(Case):
    """Options come from the config.json that transformers writes."""

    def options(self, folder):
        config = json.loads((folder / "config.json").read_text())
        rope = config["rope_parameters"]
        given = {"dim": "hidden_size", "inter_dim": "intermediate_size", "moe_inter_dim": "moe_intermediate_size",
                 "n_layers": "num_hidden_layers", "n_dense_layers": "first_k_dense_replace", "n_heads": "num_attention_heads",
                 "kv_lora_rank": "kv_lora_rank", "qk_nope_head_dim": "qk_nope_head_dim", "qk_rope_head_dim": "qk_rope_head_dim",
                 "v_head_dim": "v_head_dim", "num_experts": "n_routed_experts", "num_shared_experts": "n_shared_experts",
                 "top_k": "num_experts_per_tok", "route_scale": "routed_scaling_factor", "num_expert_groups": "n_group",
                 "num_limited_groups": "topk_group", "norm_eps": "rms_norm_eps"}
        words = [word for ours, theirs in given.items() for word in (f"--model.{ours}", config[theirs])]
        return [*words, "--model.q_lora_rank", config["q_lora_rank"] or 0, "--model.yarn", "always", "--model.rope_factor",
                rope["factor"], "--model.original_seq_len", rope["original_max_position_embeddings"], "--model.mscale",
                rope["mscale_all_dim"]]

    def load_and_save(self, folder, *arguments):
        """A step with learning rate 0 on imported weights, saved in Hugging Face's format."""
        run = train(RECIPE, self.out, 2, *self.options(folder), *degrees(data_parallel_shard=-1), "--checkpoint.enable",
                    "--checkpoint.interval", "1", "--checkpoint.initial_load_path", folder, "--checkpoint.initial_load_in_hf",
                    "--optimizer.lr", "1e-30", "--training.steps", "1", "--checkpoint.last_save_in_hf",
                    "--checkpoint.last_save_model_only", *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return self.out / "checkpoint/step-1"

    def test_weights_of_transformers_come_in_and_go_out(self):
        for make, family, arguments in ((make_v3, DeepseekV3ForCausalLM, ["--model.score_func", "sigmoid", "--model.route_norm"]),
                                        (make_v2, DeepseekV2ForCausalLM, ["--model.group_score", "best"])):
            with self.subTest(make.__name__):
                folder = self.folder / make.__name__
                self.out = self.folder / f"out_{make.__name__}"
                theirs = make(folder)
                step = self.load_and_save(folder, *arguments)
                expected, found = weights_of(folder), weights_of(step)
                self.assertEqual(sorted(found), sorted(expected))
                moved = [name for name in expected if not torch.equal(found[name], expected[name])]
                # a step moves the biases of the router at any learning rate
                self.assertEqual(moved, [name for name in expected if name.endswith("e_score_correction_bias")])
                for name in moved:
                    torch.testing.assert_close(found[name], expected[name], rtol=0, atol=2.1e-3)
                again, info = family.from_pretrained(step, dtype=torch.float32, output_loading_info=True)
                for names in ("missing_keys", "unexpected_keys", "mismatched_keys"):
                    self.assertEqual(sorted(info[names]), [])
                if make is make_v2:
                    tokens = torch.arange(40).view(1, 40)
                    with torch.no_grad():
                        torch.testing.assert_close(again.eval()(tokens).logits, theirs(tokens).logits, rtol=0, atol=1e-5)

    @thorough
    def test_a_bias_that_no_step_moves_is_kept(self):
        theirs = make_v3(self.folder / "theirs")
        step = self.load_and_save(self.folder / "theirs", "--model.score_func", "sigmoid", "--model.route_norm", "--model.load_balance_coeff", 0)
        expected, found = weights_of(self.folder / "theirs"), weights_of(step)
        self.assertEqual(sorted(found), sorted(expected))
        for name, value in expected.items():
            self.assertTrue(torch.equal(found[name], value), name)
        assert_scores_equal_transformers(self, theirs, self.folder / "theirs", (1, ["--model.load_balance_coeff", 0]))

    def test_blocks_of_float8_and_a_layer_that_predicts_further(self):
        """As DeepSeek-V3 was published: weights times scales of 128 x 128 blocks, and one layer more than the network has."""
        folder = self.folder / "v3"
        make_v3(folder)
        weights, expected = weights_of(folder), {}
        for name, value in list(weights.items()):
            if "_proj" not in name:
                continue
            scale = torch.rand([-(-size // 128) for size in value.shape]) * 0.01 + 0.001
            wide = scale.repeat_interleave(128, 0).repeat_interleave(128, 1)[:value.shape[0], :value.shape[1]]
            weights[name] = (value / wide).to(torch.float8_e4m3fn)
            weights[name + "_scale_inv"] = scale
            expected[name] = weights[name].float() * wide
            if name.startswith("model.layers.2."):
                for suffix in ("", "_scale_inv"):
                    weights[name.replace(".2.", ".3.", 1) + suffix] = weights[name + suffix].clone()
        for name in ("eh_proj.weight", "enorm.weight", "shared_head.head.weight", "mlp.gate.e_score_correction_bias"):
            weights["model.layers.3." + name] = torch.ones(4)
        for path in folder.rglob("*.safetensors"):
            path.unlink()
        safetensors.torch.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        config["quantization_config"] = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                                         "weight_block_size": [128, 128]}
        (folder / "config.json").write_text(json.dumps(config))
        found = weights_of(self.load_and_save(folder, "--checkpoint.initial_load_in_hf_quantized", "--model.score_func", "sigmoid",
                                              "--model.route_norm"))
        self.assertGreater(len(expected), 3 * 5 + 3 + 2 * 3 * (EXPERTS + 1) - 1)
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=0, atol=1e-25)  # the step changes zeros slightly
        self.assertFalse([name for name in found if ".layers.3." in name])


if __name__ == "__main__":
    main()
