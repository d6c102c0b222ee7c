"""experiments/olmo2, built against an installation: a model of the transformer family, judged by transformers' Olmo2ForCausalLM (logits,
import and export of weights, greedy ids), and every layout compared with one rank."""

import functools
import json
import os
import pathlib
import tempfile

import before_transformers

import numpy
import safetensors.numpy
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, Olmo2Config, Olmo2ForCausalLM

from generate_test import NEW, VOCAB, greedy, prompts_of, saved
from harness import ROOT, Case, main, metrics
from installed import build_project, run_checked, titan_installed, train_installed

transformers.utils.logging.disable_progress_bar()

RECIPE = ["--job.config_file", "experiments/olmo2/train.toml"]
P = "--parallelism."
NUMBERS = ("loss_metrics/global_avg_loss", "grad_norm")
LENGTH, ROWS = 64, 2
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "olmo2"
    PLUGINS = build_project(ROOT / "experiments/olmo2", build) / "lib/titan/plugins"


def train(out, ranks, *arguments):
    return train_installed(ranks, *RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", out, *arguments)


def curves(out, ranks, *arguments):
    """Losses and norms by step, and hashes of the initial weights and of each step's tokens."""
    run = train(out, ranks, *arguments)
    assert run.returncode == 0, run.stderr
    return [[line[number] for line in metrics(out)] for number in NUMBERS], (out / "fingerprints.jsonl").read_text()


@functools.cache
def of_one_rank():
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        return curves(pathlib.Path(folder), 1)


def make_model(folder, **changes):
    """transformers' model with the recipe's sizes and other weights."""
    torch.manual_seed(5)
    config = Olmo2Config(**{
        "hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
        "vocab_size": VOCAB, "rms_norm_eps": 1e-6, "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"},
        "max_position_embeddings": 4096, "pad_token_id": None, "bos_token_id": 2046, "eos_token_id": 2047,
        "attn_implementation": "eager"} | changes)
    return saved(Olmo2ForCausalLM(config).eval(), folder)


def safetensors_of(folder):
    found = {}
    for path in sorted(folder.rglob("*.safetensors")):
        found |= safetensors.numpy.load_file(path)
    return found


class ProbedCase(Case):
    def probe(self, name, **job):
        """The output of the model's plugin for `job`, and the folder with its files."""
        out = self.folder / name
        out.mkdir()
        path = self.write(f"{name}.json", json.dumps({"model": "maintainers/olmo2", "seq_len": LENGTH, "options": {}} | job))
        run_checked(os.environ["TITAN_MODEL_PROBE"], "--plugins", PLUGINS, "--job", path, "--out", out)
        return json.loads((out / "result.json").read_text()), out


class LayoutTest(Case):
    def test_every_layout_equals_one_rank(self):
        expected, prints = of_one_rank()
        self.assertEqual([len(numbers) for numbers in expected], [20, 20])
        self.assertLess(expected[0][-1], expected[0][0] - 0.5, "it did not learn")
        whole = [P + "data_parallel_shard_degree", "1"]
        for name, ranks, arguments in (
                ("fsdp", 2, [P + "data_parallel_shard_degree", "2"]),
                ("tp", 2, [*whole, P + "tensor_parallel_degree", "2"]),
                ("pp", 2, [*whole, P + "pipeline_parallel_degree", "2"]),
                ("fsdp and tp, whole sequences, blocks run again", 4,
                 [P + "data_parallel_shard_degree", "2", P + "tensor_parallel_degree", "2", P + "tensor.no_sequence_parallel",
                  "--activation_checkpoint.mode", "full"])):
            with self.subTest(name):
                found, found_prints = curves(self.folder / name.replace(" ", "_"), ranks, *arguments)
                self.assertEqual(found_prints, prints, "initial weights or tokens")
                numpy.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_ranks_can_be_played_without_memory(self):
        run = titan_installed("estimate", "--ranks", 4, *RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", self.out,
                              P + "tensor_parallel_degree", "2", P + "pipeline_parallel_degree", "2")
        self.assertEqual(run.returncode, 0, run.stderr)


class ExchangeTest(ProbedCase):
    def test_weights_come_in_and_go_out(self):
        for name, changes in (("own_head", {}), ("tied", {"tie_word_embeddings": True, "num_key_value_heads": 4})):
            with self.subTest(name):
                source, out = self.folder / name, self.folder / f"out_{name}"
                model = make_model(source, **changes)
                expected = safetensors_of(source)
                flags = ["--model.enable_weight_tying", "--model.n_kv_heads", "4"] if changes else []
                # a step with learning rate 0 on the imported weights, saved in Hugging Face's
                # format
                run = train(out, 2, P + "data_parallel_shard_degree", "-1", "--training.dtype", "float32", "--checkpoint.enable",
                            "--checkpoint.interval", "1", "--checkpoint.initial_load_path", source, "--checkpoint.initial_load_in_hf",
                            "--optimizer.lr", "1e-30", "--training.steps", "1", "--checkpoint.last_save_in_hf",
                            "--checkpoint.last_save_model_only", *flags)
                self.assertEqual(run.returncode, 0, run.stderr)
                found = safetensors_of(out / "checkpoint/step-1")
                self.assertEqual(sorted(found), sorted(expected))
                for tensor, value in expected.items():
                    numpy.testing.assert_array_equal(found[tensor], value, tensor)
                again, info = Olmo2ForCausalLM.from_pretrained(out / "checkpoint/step-1", dtype=torch.float32,
                                                               attn_implementation="eager", output_loading_info=True)
                self.assertEqual([names for names in info.values() if names], [])
                tokens = torch.arange(50).view(1, 50)
                with torch.no_grad():
                    self.assertTrue(torch.equal(again.eval()(tokens).logits, model(tokens).logits))

    def test_logits_are_those_of_transformers(self):
        model = make_model(self.folder / "hf")
        sizes = {"dim": 64, "n_layers": 4, "n_heads": 4, "n_kv_heads": 2, "hidden_dim": 176, "vocab_size": VOCAB}
        stored = safetensors_of(self.folder / "hf")
        weights = self.folder / "weights"
        weights.mkdir()
        for rule in self.probe("names", options=sizes)[0]["name_rules"]:
            stored.pop(rule["theirs"]).tofile(weights / f"{rule['ours']}.bin")
        self.assertEqual(stored, {})
        tokens = torch.randint(VOCAB, (ROWS, LENGTH), generator=torch.Generator().manual_seed(3))
        file = self.folder / "tokens.bin"
        tokens.numpy().tofile(file)
        for dtype, limit in (("float32", 1e-5), ("float64", 2e-6)):  # logits are written in float32
            with self.subTest(dtype):
                _, out = self.probe(dtype, options=sizes, seed=1, dtype=dtype, weights=str(weights), rows=ROWS, batches=1,
                                    tokens=str(file), labels=str(file))
                found = torch.from_numpy(numpy.fromfile(out / "logits.bin", "<f4")).view(ROWS, LENGTH, VOCAB)
                with torch.no_grad():
                    expected = model.to(getattr(torch, dtype))(tokens).logits.float()
                    moved = model(tokens.flip(0)).logits.float()
                self.assertLess((found - expected).abs().max().item(), limit * expected.abs().max().item())
                self.assertGreater((found - moved).abs().max().item(), 1)

    def test_the_flavors_have_the_published_sizes(self):
        for flavor in ("1B", "7B"):
            with self.subTest(flavor):
                ours, _ = self.probe(flavor, flavor=flavor)
                (self.folder / flavor / "config.json").write_text(json.dumps(ours["hf_config"]))
                with torch.device("meta"):
                    theirs = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(self.folder / flavor)).state_dict()
                self.assertEqual(sum(weight.numel() for weight in theirs.values()), ours["num_parameters"])
                shapes = {parameter["name"]: parameter["shape"] for parameter in ours["parameters"]}
                self.assertEqual({rule["theirs"]: shapes[rule["ours"]] for rule in ours["name_rules"]},
                                 {name: list(weight.shape) for name, weight in theirs.items()})
        self.assertEqual(ours["num_parameters"], 7_298_617_344)

    def test_another_network_is_refused_by_its_keys(self):
        make_model(self.folder / "hf", rms_norm_eps=1e-5)
        run = train(self.out, 1, "--checkpoint.enable", "--checkpoint.initial_load_path", self.folder / "hf",
                    "--checkpoint.initial_load_in_hf", "--training.steps", "1")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, "rms_norm_eps is 1e-05 there and 1e-06 here")


class GreedyTest(Case):
    PROMPTS = prompts_of(5, 1, 23, 40, 2)

    def test_equals_transformers(self):
        model = make_model(self.folder / "hf")
        expected = [greedy(model, prompt) for prompt in self.PROMPTS]
        prompts = self.write("prompts.jsonl", "".join(json.dumps({"prompt_ids": ids}) + "\n" for ids in self.PROMPTS))
        for ranks, flags in ((1, []), (1, ["--no-cache"]), (2, [P + "tensor_parallel_degree", 2]), (2, [P + "pipeline_parallel_degree", 2])):
            with self.subTest(flags=flags):
                launch = ["launch", "--nproc", ranks, "--log-dir", self.folder / "logs", "--"] if ranks > 1 else []
                run = titan_installed(*launch, "generate", "--checkpoint", self.folder / "hf", "--plugins.paths", PLUGINS, "--prompts",
                                      prompts, "--max-new-tokens", NEW, "--json", "--ignore-eos", *flags)
                self.assertEqual(run.returncode, 0, run.stderr)
                lines = [json.loads(line[line.index("{"):]) for line in run.stdout.splitlines() if "{" in line]
                self.assertEqual([line["ids"] for line in lines], expected)


if __name__ == "__main__":
    main()
