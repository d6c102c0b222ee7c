"""The mixture of experts of the model mixtral: layouts and recomputation compared with one rank in float64, its bias through steps,
validation and checkpoints, the load of experts, and import and export of transformers' weights. Experts on several ranks:
expert_parallel_test.py."""

import json

import before_transformers

import numpy
import safetensors.numpy
import tokenizers
import torch
import transformers
from transformers import MixtralConfig, MixtralForCausalLM
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from harness import ROOT, main, metrics, thorough, titan
from mixtral_case import (AUXILIARY, DOUBLE, EXPERTS, LAYERS, MEASURED, SAVES, SHARD, SIZES, STEPS, TOP_K, MixtralCase, alone, biases,
                          curves, degrees, tagged, train)
from scored_texts import assert_scores_equal_transformers

transformers.utils.logging.disable_progress_bar()

COEFFICIENT = 0.1  # of the load-balance loss


class MixtralTest(MixtralCase):
    def test_the_load_is_that_of_the_tokens(self):
        for line in alone()[2]:
            for layer in range(LAYERS):
                load = [line[f"experts/load/layers.{layer}.moe/{expert}"] for expert in range(EXPERTS)]
                self.assertAlmostEqual(sum(load), EXPERTS, 9)
                fullest = line[f"experts/max_over_mean/layers.{layer}.moe"]
                self.assertGreaterEqual(fullest + 1e-9, max(load))
                self.assertGreaterEqual(line[f"experts/idle/layers.{layer}.moe"], 0)

    def test_fsdp(self):
        self.assert_equals_one_rank(2, *SHARD)
        self.assert_equals_one_rank(4, *SHARD)

    @thorough
    def test_replicas(self):
        self.assert_equals_one_rank(2, *degrees(data_parallel_shard=1, data_parallel_replicate=2))
        self.assert_equals_one_rank(4, *degrees(data_parallel_shard=2, data_parallel_replicate=2))

    @thorough
    def test_full_experts_drop_the_same_choices_under_every_layout(self):
        full = ["--model.capacity_factor", "0.75"]
        self.assertNotEqual(alone(*full)[0], alone()[0])
        self.assert_equals_one_rank(2, *SHARD, model=full)
        self.assert_equals_one_rank(2, *SHARD, *degrees(expert_parallel=2), "--activation_checkpoint.mode", "full", model=full)
        self.assert_equals_one_rank(2, *degrees(pipeline_parallel=2), "--training.local_batch_size", "2", model=full, same_load=False)
        for axis in ("tensor_parallel", "context_parallel"):
            run = train(self.folder / axis, 2, *full, *degrees(**{axis: 2}))
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, "capacity_factor", "whole sequences", "drop no tokens")

    def test_pipelines(self):
        self.assert_equals_one_rank(2, *degrees(pipeline_parallel=2), "--training.local_batch_size", "2", same_load=False)
        self.assert_equals_one_rank(2, *degrees(pipeline_parallel=2), "--training.local_batch_size", "4",
                                    "--parallelism.pipeline_parallel_schedule", "ZBVZeroBubble", same_load=False)

    @thorough
    def test_tensor_and_context_parallelism_cut_the_rest(self):
        self.assert_equals_one_rank(2, *degrees(tensor_parallel=2), same_load=False)
        self.assert_equals_one_rank(2, *degrees(context_parallel=2), same_load=False)
        self.assert_equals_one_rank(4, *SHARD, *degrees(tensor_parallel=2), same_load=False)

    @thorough
    def test_where_blocks_are_run_again(self):
        for mode in (["full"], ["full", "--activation_checkpoint.early_stop"],
                     ["selective", "--activation_checkpoint.selective_ac_option", "op"],
                     ["memory_budget", "--activation_checkpoint.memory_budget", "0.3"]):
            self.assert_equals_one_rank(2, *SHARD, "--activation_checkpoint.mode", *mode)

    @thorough
    def test_a_run_goes_on_under_another_layout(self):
        self.assert_goes_on((2, SHARD), ((1, []), (2, degrees(pipeline_parallel=2) + ["--training.local_batch_size", "2"]), (2, SHARD)))

    def test_validation_moves_nothing(self):
        run = train(self.out, 1, *DOUBLE, *SAVES, "--validation.enable", "--validation.dataset", "jsonl",
                    "--validation.dataset_path", "./tests/assets/corpus/validation.jsonl", "--validation.seq_len", "64",
                    "--validation.steps", "2", "--validation.freq", "1", "--validation.local_batch_size", "1")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_equal_biases(biases(self.out / f"checkpoint/step-{STEPS}"), alone()[3])

    def test_a_loss_of_uneven_load_is_logged_and_evens_it(self):
        fullest = {}
        for coefficient in ("0", "1.0"):
            out = self.folder / coefficient
            run = train(out, 1, *MEASURED, "--model.load_balance_coeff", "0", "--model.load_balance_loss", coefficient,
                        "--training.steps", "20", "--optimizer.lr", "1e-3")
            self.assertEqual(run.returncode, 0, run.stderr)
            logged = tagged(out, AUXILIARY)
            self.assertEqual(len(logged), 20 if coefficient != "0" else 0)
            for line in logged:  # two layers, each 1 with even load
                self.assertAlmostEqual(line[AUXILIARY], LAYERS, delta=0.1)
            fullest[coefficient] = numpy.mean([max(line.values()) for line in tagged(out, "experts/load/")[-5:]])
        self.assertLess(fullest["1.0"], fullest["0"] - 0.1)

    def train_documents(self, name, texts, seq_len, ranks, *arguments):
        """Rows of one document each, padded to `seq_len`."""
        path = self.write("documents.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts))
        out = self.folder / name
        run = train(out, ranks, *DOUBLE, *SAVES, *MEASURED, "--training.dataset_path", path, "--data.packing", "best_fit",
                    "--model.load_balance_loss", COEFFICIENT, "--training.seq_len", seq_len, "--training.steps", 3, *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return out

    def test_padding_is_no_load(self):
        """Documents of 41 tokens fill a row of 40, and one of 64 with padding; padding changes neither losses nor biases."""
        texts = texts_of(41, 8)
        full = self.train_documents("full", texts, 40, 1)
        expected = curves(full, last=3)
        self.assertEqual(len(expected[0]), 3)
        for name, ranks, arguments in (("experts", 2, [*SHARD, *degrees(expert_parallel=2)]),
                                       ("recomputed", 1, ["--activation_checkpoint.mode", "full"])):
            with self.subTest(name):
                out = self.train_documents(name, texts, 64, ranks, *arguments)
                values, _, load, last = curves(out, last=3)
                numpy.testing.assert_allclose(values, expected[0], rtol=1e-9)
                self.assert_equal_biases(last, expected[3])
                for found, line in zip(load, expected[2], strict=True):
                    for tag in (tag for tag in line if tag.startswith("experts/load/")):
                        self.assertAlmostEqual(found[tag], line[tag], 12, tag)
                for tag in ("n_tokens_seen", "n_tokens_learned"):
                    self.assertEqual([line[tag] for line in metrics(out) if tag in line], [8 * 40 * step for step in (1, 2, 3)])

    def test_the_loss_of_uneven_load_is_that_of_transformers_by_document(self):
        theirs = self.make_theirs()
        theirs.save_pretrained(self.folder / "theirs")
        texts = [text for length in (35, 41, 50, 64) for text in texts_of(length, 2)]
        out = self.train_documents("padded", texts, 64, 2, *SHARD, "--checkpoint.initial_load_path", self.folder / "theirs",
                                   "--checkpoint.initial_load_in_hf", "--training.dtype", "float32")
        expected, num_tokens = 0, 0
        for text in texts:
            ids = torch.tensor([ids_of(text)[:-1]])  # the last token is not an input
            with torch.no_grad():
                logits = theirs(ids, output_router_logits=True).router_logits
            of_layers = [load_balancing_loss_func((of_layer,), EXPERTS, TOP_K).item() / TOP_K for of_layer in logits]
            expected += COEFFICIENT * sum(of_layers) * ids.shape[1]
            num_tokens += ids.shape[1]
        self.assertAlmostEqual(metrics(out)[0][AUXILIARY] * num_tokens / expected, 1, 5)
        self.assertEqual(metrics(out)[0]["n_tokens_seen"], num_tokens)

    def test_even_load_can_be_forced(self):
        run = train(self.out, 1, *MEASURED, "--debug.moe_force_load_balance", "--training.steps", "2")
        self.assertEqual(run.returncode, 0, run.stderr)
        for line in tagged(self.out, "experts/load/"):
            self.assertEqual(set(line.values()), {1.0})

    @thorough
    def test_forced_load_and_the_loss_of_logits_are_those_of_one_rank(self):
        coefficient, experts = 0.5, 6  # a number of experts that even load cannot fill equally, neither by row nor by batch
        model = ["--debug.moe_force_load_balance", "--model.router_z_loss", coefficient, "--model.num_experts", experts]
        curves, _, load, _ = alone(*model)
        self.assertEqual(len(curves), 3)
        for loss in curves[2]:  # logits are small: logsumexp is about ln E
            self.assertAlmostEqual(loss, LAYERS * coefficient * numpy.log(experts) ** 2, delta=0.1)
        tokens = 8 * 64 * 2
        for line in load:  # the last of all choices is for expert 1023 % 6 = 3
            for layer in range(LAYERS):
                for expert in range(experts):
                    count = tokens // experts + (expert <= 3)
                    self.assertAlmostEqual(line[f"experts/load/layers.{layer}.moe/{expert}"], count * experts / tokens, 12)
        tensor, two = degrees(tensor_parallel=2), ["--training.local_batch_size", "2"]
        for ranks, arguments in ((2, [*SHARD, "--activation_checkpoint.mode", "full"]), (2, [*tensor, *two]),
                                 (2, [*tensor, "--parallelism.tensor.no_sequence_parallel"]),
                                 (2, degrees(context_parallel=2)), (2, [*degrees(pipeline_parallel=2), *two]),
                                 (4, [*degrees(tensor_parallel=2, data_parallel_shard=-1, expert_parallel=2), *two])):
            with self.subTest(arguments=arguments):
                self.assert_equals_one_rank(ranks, *arguments, model=model, same_load=False)

    def test_what_cannot_be_is_refused_before_anything_starts(self):
        for arguments, words in ((["--model.load_balance_loss", "0.1", *degrees(tensor_parallel=2)],
                                  ["--model.load_balance_loss 0.1", "needs whole sequences"]),
                                 (["--model.top_k", "9"], ["model.top_k = 9 is above model.num_experts = 8"]),
                                 (["--model.name", "llama3", "--model.flavor", "debugmodel", "--debug.moe_force_load_balance"],
                                  ["forced expert load balance in a model without experts is not built yet"]),
                                 (["--model.name", "qwen3", "--model.flavor", "debugmodel", "--model.load_balance_coeff", "0.1"],
                                  ["--model.load_balance_coeff 0.1", "the model has no experts"])):
            keeps = SIZES[:-2] if "llama3" in arguments else SIZES
            recipe = ["--job.config_file", "train_configs/mixtral_debug.toml", *keeps]
            if "llama3" in arguments:
                recipe[1] = "train_configs/debug_model.toml"
            run = titan("train", *recipe, "--training.seq_len", "64", "--job.dump_folder", self.out, *arguments, "--dry-run",
                        "--world-size", "2")
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, *words)
        self.assertFalse(self.out.exists())

    def make_theirs(self):
        torch.manual_seed(5)
        config = MixtralConfig(hidden_size=64, intermediate_size=32, num_hidden_layers=LAYERS, num_attention_heads=4,
                               num_key_value_heads=2, vocab_size=2048, num_local_experts=EXPERTS, max_position_embeddings=32768,
                               rope_parameters={"rope_type": "default", "rope_theta": 1e6}, bos_token_id=0, eos_token_id=1)
        model = MixtralForCausalLM(config).float().eval()
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.uniform_(0.5, 1.5) if "norm" in name else weight.mul_(5)
        return model

    def test_weights_of_transformers_come_in_and_go_out(self):
        theirs = self.make_theirs()
        theirs.save_pretrained(self.folder / "theirs")
        # a step with learning rate 0 on the imported weights, saved in Hugging Face's format
        run = train(self.out, 2, *SHARD, "--checkpoint.enable", "--checkpoint.interval", "1", "--checkpoint.initial_load_path",
                    self.folder / "theirs", "--checkpoint.initial_load_in_hf", "--optimizer.lr", "1e-30", "--training.steps", "1",
                    "--checkpoint.last_save_in_hf", "--checkpoint.last_save_model_only")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_holds(run.stderr, "Hugging Face's format of model 'mixtral' has no place for layers.0.moe.expert_bias and 1 state like it")
        expected = safetensors_of(self.folder / "theirs")
        self.assertEqual(len(expected), 3 + LAYERS * (7 + 3 * EXPERTS))
        found = safetensors_of(self.out / "checkpoint/step-1")
        self.assertEqual(sorted(found), sorted(expected))
        for name, value in expected.items():
            numpy.testing.assert_array_equal(found[name], value, name)
        tokens = torch.arange(40).view(1, 40)
        again = MixtralForCausalLM.from_pretrained(self.out / "checkpoint/step-1", dtype=torch.float32).eval()
        with torch.no_grad():
            self.assertTrue(torch.equal(again(tokens).logits, theirs(tokens).logits))
        loss = torch.nn.functional.cross_entropy
        self.assertGreater(metrics(self.out)[0]["loss_metrics/global_avg_loss"], loss(torch.zeros(1, 2048), torch.tensor([0])).item() / 2)

    def test_text_goes_on_and_is_scored_as_by_transformers(self):
        theirs = self.make_theirs()
        theirs.save_pretrained(self.folder / "theirs")
        prompt = [5, 99, 1000, 7]
        prompts = self.write("prompts.jsonl", json.dumps({"prompt_ids": prompt}) + "\n")
        run = titan("generate", "--checkpoint", self.folder / "theirs", "--prompts", prompts, "--max-new-tokens", "12", "--ignore-eos",
                    "--json", "--model.hf_assets_path", f"{ROOT}/tests/assets/tokenizer")
        self.assertEqual(run.returncode, 0, run.stderr)
        with torch.no_grad():
            expected = theirs.generate(torch.tensor([prompt]), max_new_tokens=12, do_sample=False, eos_token_id=None, pad_token_id=0)
        self.assertEqual(json.loads(run.stdout)["ids"], expected[0, len(prompt):].tolist())
        assert_scores_equal_transformers(self, theirs, self.folder / "theirs", (1, []), (2, SHARD + degrees(expert_parallel=2)))


def ids_of(text):
    """Ids between BOS and EOS."""
    tokenizer = tokenizers.Tokenizer.from_file(str(ROOT / "tests/assets/tokenizer/tokenizer.json"))
    return tokenizer.encode(text).ids + [tokenizer.token_to_id("<|end_of_text|>")]


def texts_of(length, count):
    """Different texts of `length` tokens each, including BOS and EOS."""
    found, words = [], (ROOT / "tests/assets/corpus/train.jsonl").read_text().split()
    for first in range(0, len(words), 100):
        for last in range(first + 5, first + 80):
            text = " ".join(words[first:last])
            if len(ids_of(text)) == length:
                found.append(text)
                break
        if len(found) == count:
            return found
    raise AssertionError(f"no {count} texts of {length} tokens")


def safetensors_of(folder):
    found = {}
    for path in sorted(folder.rglob("*.safetensors")):
        found |= safetensors.numpy.load_file(path)
    return found


if __name__ == "__main__":
    main()
