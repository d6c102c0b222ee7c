"""The model llama4: every layout compared with one rank in float64, with chunks that span ranks of context parallelism
and layers without positions; import and export of transformers' weights, including a model that reads images; greedy
ids of transformers."""


import before_transformers

import numpy
import safetensors.numpy
import torch
import transformers
from transformers import Llama4Config, Llama4ForCausalLM, Llama4ForConditionalGeneration, Llama4TextConfig

import layout_case
from generate_test import NEW, VOCAB, GenerateCase, greedy, prompts_of, saved
from harness import Case, main, metrics, thorough
from layout_case import degrees, train
from scored_texts import assert_scores_equal_transformers

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()  # transformers warns about Llama 4's rotary scaling

LAYERS, EXPERTS, CHUNK, FLOOR = 4, 4, 20, 4
SIZES = ["--model.dim", 64, "--model.n_layers", LAYERS, "--model.n_heads", 4, "--model.n_kv_heads", 2, "--model.hidden_dim", 96,
         "--model.moe_hidden_dim", 32, "--model.num_experts", EXPERTS, "--model.every_n_layers_nope", 4, "--model.nope_layer_offset", 3,
         "--model.attention_chunk_size", CHUNK, "--model.use_qk_norm", "--model.attn_temperature_tuning", "--model.floor_scale", FLOOR]
RECIPE = ["--job.config_file", "train_configs/llama4_debug.toml", *SIZES, *layout_case.SHORT]
RING = ["--parallelism.context_parallel_rotate_method", "alltoall", "--parallelism.context_parallel_load_balancer", "None"]


class LayoutTest(layout_case.LayoutCase):
    RECIPE = [*RECIPE, "--optimizer.lr", "8e-4"]
    MORE_LAYOUTS = ((2, [*degrees(data_parallel_shard=1, pipeline_parallel=2), "--parallelism.pipeline_parallel_schedule", "1F1B"]),
                    (4, [*degrees(data_parallel_shard=1, context_parallel=4), *RING]),
                    (2, degrees(data_parallel_shard=1, tensor_parallel=2, expert_tensor_parallel=2)))

    def test_what_v022_has_not_changes_the_losses(self):
        for change in (["--model.attention_chunk_size", "19"], ["--model.no_use_qk_norm"], ["--model.no_attn_temperature_tuning"],
                       ["--model.nope_layer_offset", "0"]):
            with self.subTest(change=change):
                self.assertGreater(abs(numpy.subtract(self.losses_of_one_rank(*change), self.losses_of_one_rank())).max(), 1e-6)


def text_config(**changes):
    """The config.json of SIZES and the recipe."""
    return Llama4TextConfig(**{
        "hidden_size": 64, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "intermediate_size": 32, "intermediate_size_mlp": 96, "num_local_experts": EXPERTS, "interleave_moe_layer_step": 2,
        "vocab_size": VOCAB, "attention_chunk_size": CHUNK, "floor_scale": FLOOR, "max_position_embeddings": 1048576,
        "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 16.0, "low_freq_factor": 1.0,
                            "high_freq_factor": 1.0, "original_max_position_embeddings": 8192},
        "bos_token_id": 2046, "eos_token_id": 2047} | changes)


def safetensors_of(folder):
    found = {}
    for path in sorted(folder.rglob("*.safetensors")):
        found |= safetensors.numpy.load_file(path)
    return found


class ExchangeTest(Case):
    def make_text(self):
        torch.manual_seed(5)
        return saved(Llama4ForCausalLM(text_config()).eval(), self.folder / "text")

    def make_with_images(self, text):
        torch.manual_seed(6)
        vision = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128, "image_size": 28,
                  "patch_size": 14, "vision_output_dim": 64, "projector_input_dim": 64, "projector_output_dim": 64}
        model = Llama4ForConditionalGeneration(Llama4Config(text_config=text_config().to_dict(), vision_config=vision)).eval()
        model.language_model.load_state_dict(text.state_dict())
        model.save_pretrained(self.folder / "images")

    def test_weights_come_in_and_go_out(self):
        text = self.make_text()
        self.make_with_images(text)
        expected = safetensors_of(self.folder / "text")
        with_images = safetensors_of(self.folder / "images")
        self.assertEqual({name.removeprefix("language_model.") for name in with_images if name.startswith("language_model.")},
                         set(expected))
        self.assertTrue(any(name.startswith("vision_model.") for name in with_images))
        tokens = torch.arange(50).view(1, 50)
        for source in ("text", "images"):
            with self.subTest(source=source):
                # a step with learning rate 0 on the imported weights, saved in Hugging Face's
                # format
                out = self.folder / f"out_{source}"
                run = train(RECIPE, out, 2, *degrees(data_parallel_shard=-1), "--checkpoint.enable", "--checkpoint.interval", "1",
                            "--checkpoint.initial_load_path", self.folder / source, "--checkpoint.initial_load_in_hf",
                            "--optimizer.lr", "1e-30", "--training.steps", "1", "--checkpoint.last_save_in_hf",
                            "--checkpoint.last_save_model_only")
                self.assertEqual(run.returncode, 0, run.stderr)
                found = safetensors_of(out / "checkpoint/step-1")
                self.assertEqual(sorted(found), sorted(expected))
                for name, value in expected.items():
                    numpy.testing.assert_array_equal(found[name], value, name)
                again, info = Llama4ForCausalLM.from_pretrained(out / "checkpoint/step-1", dtype=torch.float32,
                                                                output_loading_info=True)
                self.assertEqual([names for names in info.values() if names], [])
                with torch.no_grad():
                    self.assertTrue(torch.equal(again.eval()(tokens).logits, text(tokens).logits))
                loss = torch.nn.functional.cross_entropy(torch.zeros(1, VOCAB), torch.tensor([0])).item()
                self.assertGreater(metrics(out)[0]["loss_metrics/global_avg_loss"], loss / 2)

    def test_a_config_of_other_layers_is_refused(self):
        """Options cannot express every choice of layers with experts; the norm of queries is an option."""
        torch.manual_seed(5)
        for name, config, code, texts in (
                ("layers", {"moe_layers": [0, 3], "use_qk_norm": False}, 1,
                 ("does not support", "moe_layers is [0,3] there and [1,3] here", "no option of [model] changes that")),
                ("norms", {"use_qk_norm": False}, 2,
                 ("describes another model", "use_qk_norm is false there and true here", "set the model's options"))):
            with self.subTest(name):
                saved(Llama4ForCausalLM(text_config(**config)), self.folder / name)
                run = train(RECIPE, self.out, 1, "--checkpoint.enable", "--checkpoint.initial_load_path", self.folder / name,
                            "--checkpoint.initial_load_in_hf", "--training.steps", "1")
                self.assertEqual(run.returncode, code, run.stderr)
                self.assert_holds(run.stderr, *texts)


class GreedyTest(GenerateCase):
    """Prompts shorter and longer than a chunk."""

    PROMPTS = prompts_of(5, 1, 23, 40, 2)

    def assert_equals_transformers(self, config):
        torch.manual_seed(5)
        config._attn_implementation = "eager"
        model = saved(Llama4ForCausalLM(config).eval(), self.folder / "hf")
        expected = [greedy(model, prompt) for prompt in self.PROMPTS]
        for flags, ranks in (([], 1), (["--no-cache"], 1), (["--parallelism.tensor_parallel_degree", 2], 2)):
            with self.subTest(flags=flags):
                lines = self.generate(self.folder / "hf", "--prompts", self.prompts_file(self.PROMPTS), "--max-new-tokens", NEW,
                                      "--json", "--ignore-eos", *flags, ranks=ranks)
                self.assertEqual([line["ids"] for line in lines], expected)
        return model

    def test_equals_transformers(self):
        model = self.assert_equals_transformers(text_config())
        shared = degrees(data_parallel_shard=2, expert_parallel=2)
        assert_scores_equal_transformers(self, model, self.folder / "hf", (1, []), (2, shared))

    @thorough
    def test_equals_transformers_where_all_layers_are_alike(self):
        self.assert_equals_transformers(text_config(
            no_rope_layers=[1] * LAYERS, layer_types=["full_attention"] * LAYERS, use_qk_norm=False, attn_temperature_tuning=False))


if __name__ == "__main__":
    main()
