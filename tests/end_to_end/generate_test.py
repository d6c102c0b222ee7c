"""`titan generate`: the tokens of transformers' generate under every layout; sampling with transformers' processors; texts that stop
where they should; invalid input."""

import functools
import json
import pathlib
import shutil
import subprocess
import tempfile

import before_transformers

import torch
import transformers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM
from transformers.generation.logits_process import (LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor,
                                                    TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)

from harness import HANG, ROOT, TINY, TITAN, Case, environment, main, thorough, titan
from scored_texts import assert_scores_equal_transformers

transformers.utils.logging.disable_progress_bar()

VOCAB, NEW = 2048, 64
TOKENIZER = f"{ROOT}/tests/assets/tokenizer"
SCALED = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 256}


def make_model(folder, tied=False, rope=None, kv_heads=2, theta=500000.0):
    torch.manual_seed(5)
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=64, intermediate_size=176, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=kv_heads,
        vocab_size=VOCAB, rms_norm_eps=1e-5, rope_parameters={"rope_theta": theta} | (rope or {"rope_type": "default"}),
        tie_word_embeddings=tied, max_position_embeddings=512, bos_token_id=2046, eos_token_id=2047)).eval()
    return saved(model, folder)


def make_qwen3(folder):
    """Heads are wider than hidden_size / num_attention_heads, and the output head is tied to the embedding."""
    torch.manual_seed(5)
    model = Qwen3ForCausalLM(Qwen3Config(
        hidden_size=64, intermediate_size=176, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
        vocab_size=VOCAB, rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"}, tie_word_embeddings=True,
        max_position_embeddings=512, bos_token_id=2046, eos_token_id=2047)).eval()
    return saved(model, folder)


def make_qwen3_moe(folder):
    torch.manual_seed(5)
    model = Qwen3MoeForCausalLM(Qwen3MoeConfig(
        hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=32, vocab_size=VOCAB,
        num_experts=8, num_experts_per_tok=3, moe_intermediate_size=48, norm_topk_prob=True, max_position_embeddings=512,
        rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"}, bos_token_id=2046, eos_token_id=2047)).eval()
    return saved(model, folder)


def saved(model, folder):
    """Weights with a larger std than at the start of training, so that the likeliest tokens differ clearly."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.uniform_(0.5, 1.5) if "norm" in name else weight.mul_(5)
    model.save_pretrained(folder)
    return model


def prompts_of(*sizes):
    generator = torch.Generator().manual_seed(3)
    return [torch.randint(2, 2040, (size,), generator=generator).tolist() for size in sizes]


def greedy(model, prompt, tokens=NEW, eos=None):
    """The greedy ids of transformers, computed once per model; its weights never change."""
    return list(found_greedy(model, tuple(prompt), tokens, tuple(eos) if eos else None))


@functools.cache
def found_greedy(model, prompt, tokens, eos):
    ids = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), max_new_tokens=tokens,
                         do_sample=False, eos_token_id=list(eos) if eos else None, pad_token_id=0)
    return ids[0, len(prompt):].tolist()


class GenerateCase(Case):
    def generate(self, checkpoint, *arguments, ranks=1, code=0):
        """The JSON lines; the whole result when `code` is not 0."""
        words = ["generate", "--checkpoint", checkpoint, *map(str, arguments)]
        if ranks > 1:
            words = ["launch", "--nproc", str(ranks), "--log-dir", self.folder / "logs", "--", *words]
        run = titan(*words)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        if code:
            return run
        return [json.loads(line[line.index("{"):]) for line in run.stdout.splitlines() if "{" in line]

    def prompts_file(self, prompts):
        return self.write("prompts.jsonl", "".join(json.dumps({"prompt_ids": ids}) + "\n" for ids in prompts))


class GreedyTest(GenerateCase):
    PROMPTS = prompts_of(5, 1, 23, 40, 2)

    def assert_equals_transformers(self, model, prompts, *arguments, ranks=1, eos=None, ignores_eos=True):
        lines = self.generate(self.folder / "hf", "--prompts", self.prompts_file(prompts), "--max-new-tokens", NEW, "--json",
                              *(["--ignore-eos"] if ignores_eos else []), *arguments, ranks=ranks)
        self.assertEqual([line["prompt_ids"] for line in lines], prompts)
        for line, prompt in zip(lines, prompts):
            self.assertEqual(line["ids"], greedy(model, prompt, eos=eos), f"after {len(prompt)} tokens")

    def test_equals_transformers_with_and_without_a_cache(self):
        for number, options in enumerate([{"rope": SCALED}, {"tied": True}, {"kv_heads": 4, "theta": 10000.0}]):
            with self.subTest(**options):
                model = make_model(self.folder / "hf", **options)
                self.assert_equals_transformers(model, self.PROMPTS)
                self.assert_equals_transformers(model, self.PROMPTS, "--batch-size", 2)
                if number == 0:
                    self.assert_equals_transformers(model, self.PROMPTS, "--no-cache")

    def test_equals_transformers_under_every_layout(self):
        model = make_model(self.folder / "hf", rope=SCALED)
        for degrees in [{"tensor": 2}, {"pipeline": 2}, {"data_parallel_shard": 2}, {"tensor": 2, "pipeline": 2}]:
            flags, ranks = [], 1
            for axis, degree in degrees.items():
                name = axis if axis.startswith("data") else axis + "_parallel"
                flags += [f"--parallelism.{name}_degree", degree]
                ranks *= degree
            with self.subTest(**degrees):
                self.assert_equals_transformers(model, self.PROMPTS, *flags, ranks=ranks)

    def test_equals_transformers_where_queries_and_keys_are_normalised(self):
        model = make_qwen3(self.folder / "hf")
        self.assert_equals_transformers(model, self.PROMPTS)
        self.assert_equals_transformers(model, self.PROMPTS, "--no-cache")
        self.assert_equals_transformers(model, self.PROMPTS, "--parallelism.tensor_parallel_degree", 2, ranks=2)

    def test_equals_transformers_with_experts(self):
        model = make_qwen3_moe(self.folder / "hf")
        self.assert_equals_transformers(model, self.PROMPTS)
        both = ["--parallelism.tensor_parallel_degree", 2, "--parallelism.expert_parallel_degree", 2,
                "--parallelism.expert_tensor_parallel_degree", 2, "--parallelism.data_parallel_shard_degree", 2]
        assert_scores_equal_transformers(self, model, self.folder / "hf", (1, []), (4, both))

    def test_bfloat16_takes_tokens_that_are_nearly_the_most_likely(self):
        """With half the bytes, each token's logit, by transformers in fp32, is the highest except for rounding in bf16."""
        model = make_model(self.folder / "hf", rope=SCALED)
        lines = self.generate(self.folder / "hf", "--prompts", self.prompts_file(self.PROMPTS), "--max-new-tokens", NEW, "--json",
                              "--ignore-eos", "--training.dtype", "bfloat16")
        missing, exact = [], 0
        for line, prompt in zip(lines, self.PROMPTS):
            with torch.no_grad():
                logits = model(torch.tensor([prompt + line["ids"]])).logits[0, len(prompt) - 1:-1]
            chosen = logits.gather(1, torch.tensor(line["ids"])[:, None])[:, 0]
            missing += ((logits.max(1).values - chosen) / logits.std(1)).tolist()
            exact += (logits.argmax(1) == torch.tensor(line["ids"])).sum().item()
        self.assertLess(max(missing), 0.3)  # in standard deviations of the logits; a wrong token would miss by three
        self.assertGreater(exact, 0.9 * NEW * len(self.PROMPTS))

    def test_long_prompts_go_in_parts(self):
        """More tokens than go through the network at once."""
        model = make_model(self.folder / "hf")
        prompts = prompts_of(400, 448, 430, 447, 441, 399)
        self.assert_equals_transformers(model, prompts)

    def test_ends_where_generation_config_says(self):
        model = make_model(self.folder / "hf")
        ends = [greedy(model, prompt)[10 + 3 * i] for i, prompt in enumerate(self.PROMPTS)]
        path = self.folder / "hf" / "generation_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": ends}))
        self.assert_equals_transformers(model, self.PROMPTS, eos=ends, ignores_eos=False)

    def test_penalises_repetition_as_transformers(self):
        model = make_model(self.folder / "hf")
        lines = self.generate(self.folder / "hf", "--prompts", self.prompts_file(self.PROMPTS), "--json", "--ignore-eos",
                              "--repetition-penalty", 1.3)
        for line, prompt in zip(lines, self.PROMPTS):
            ids = model.generate(torch.tensor([prompt]), max_new_tokens=NEW, do_sample=False, eos_token_id=None, pad_token_id=0,
                                 attention_mask=torch.ones(1, len(prompt), dtype=torch.long), repetition_penalty=1.3)
            self.assertEqual(line["ids"], ids[0, len(prompt):].tolist())


class SampledTest(GenerateCase):
    PROMPT = prompts_of(9)[0]
    DRAWS = 20000

    def probabilities(self, model, *processors):
        ids = torch.tensor([self.PROMPT])
        with torch.no_grad():
            scores = model(ids).logits[:, -1].float()
        return torch.softmax(LogitsProcessorList(processors)(ids, scores)[0], dim=-1)

    def draw(self, count, *options):
        lines = self.generate(self.folder / "hf", "--prompts", self.prompts_file([self.PROMPT]), "--json", "--max-new-tokens", 1,
                              "--num-samples", count, "--seed", 11, *options)
        self.assertEqual(len(lines), count)
        return [line["ids"][0] for line in lines]

    def test_draws_what_torch_draws_from_transformers_processors(self):
        """The same generator and the same probabilities give the same tokens."""
        model = make_model(self.folder / "hf")
        for options, processors in [
                (["--temperature", 0.7], [TemperatureLogitsWarper(0.7)]),
                (["--temperature", 1.5, "--top-k", 12], [TemperatureLogitsWarper(1.5), TopKLogitsWarper(12)]),
                (["--temperature", 2.0, "--top-p", 0.8], [TemperatureLogitsWarper(2.0), TopPLogitsWarper(0.8)]),
                (["--temperature", 2.0, "--min-p", 0.1], [TemperatureLogitsWarper(2.0), MinPLogitsWarper(0.1)]),
                (["--temperature", 1.5, "--repetition-penalty", 1.4, "--top-k", 40, "--top-p", 0.9, "--min-p", 0.02],
                 [RepetitionPenaltyLogitsProcessor(1.4), TemperatureLogitsWarper(1.5), TopKLogitsWarper(40), TopPLogitsWarper(0.9),
                  MinPLogitsWarper(0.02)])]:
            with self.subTest(options=options):
                expected = self.probabilities(model, *processors)
                wanted = [torch.multinomial(expected, 1, generator=torch.Generator().manual_seed(11 + i)).item() for i in range(300)]
                self.assertGreater(len(set(wanted)), 5)
                found = self.draw(300, *options)
                # a draw at the border between two tokens may differ because of the last bit
                self.assertLessEqual(sum(a != b for a, b in zip(found, wanted)), 1)

    @thorough
    def test_has_transformers_distribution_over_many_draws(self):
        model = make_model(self.folder / "hf")
        expected = self.probabilities(model, TemperatureLogitsWarper(1.5), TopKLogitsWarper(50), TopPLogitsWarper(0.95))
        counts = torch.bincount(torch.tensor(self.draw(self.DRAWS, "--temperature", 1.5, "--top-k", 50, "--top-p", 0.95)),
                                minlength=VOCAB).double()
        self.assertEqual(counts[expected == 0].sum().item(), 0)
        # chi-squared over the possible tokens; those with fewer than 5 expected draws are combined
        wanted = expected.double() * self.DRAWS
        often = wanted >= 5
        terms = list(zip(counts[often].tolist(), wanted[often].tolist()))
        if wanted[~often].sum() > 0:
            terms.append((counts[~often].sum().item(), wanted[~often].sum().item()))
        square, degrees = sum((a - b)**2 / b for a, b in terms), len(terms) - 1
        self.assertGreater(degrees, 5)
        self.assertLess(square, degrees + 5 * (2 * degrees)**0.5)  # five standard deviations above the mean

    def test_the_seed_and_the_layout_do_not_matter_to_each_other(self):
        make_model(self.folder / "hf")
        options = ["--prompts", self.prompts_file(prompts_of(4, 11)), "--json", "--ignore-eos", "--temperature", 0.8, "--seed", 5]
        alone = self.generate(self.folder / "hf", *options)
        cut = self.generate(self.folder / "hf", *options, "--parallelism.tensor_parallel_degree", 2, ranks=2)
        self.assertEqual([line["ids"] for line in alone], [line["ids"] for line in cut])
        other = self.generate(self.folder / "hf", *options[:-1], 6)
        self.assertNotEqual([line["ids"] for line in alone], [line["ids"] for line in other])


class OwnCheckpointTest(GenerateCase):
    """A run's own checkpoint with unmerged adapters, compared with transformers on its export."""

    LORA = ["--model.converters", "lora", "--converter.lora.rank", 4, "--optimizer.lr", "1e-2"]
    SAVED = ["--checkpoint.enable", "--checkpoint.interval", 3, "--model.hf_assets_path", TOKENIZER]

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="titan_"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.steps, cls.exported = cls.shared / "checkpoint", cls.shared / "exported"
        cls.step = cls.steps / "step-3"
        for words in (["train", *TINY, "--job.dump_folder", cls.shared, *cls.SAVED, *cls.LORA],
                      ["convert", "to-hf", cls.step, cls.exported]):
            run = titan(*words)
            assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
        cls.model = LlamaForCausalLM.from_pretrained(cls.exported, dtype=torch.float32, local_files_only=True).eval()
        cls.tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)

    def test_equals_transformers_on_its_export(self):
        texts = ["The quick brown fox", "In the beginning", "x"]
        flags = [word for text in texts for word in ("--prompt", text)]
        # a folder of steps means its newest step
        for source in (self.step, self.steps, self.exported):
            lines = self.generate(source, *flags, "--json", "--ignore-eos", "--max-new-tokens", 40)
            for text, line in zip(texts, lines):
                ids = self.tokenizer(text).input_ids
                self.assertEqual(line["prompt_ids"], ids)
                self.assertEqual(line["ids"], greedy(self.model, ids, 40))
                self.assertEqual(line["text"], self.tokenizer.decode(line["ids"], skip_special_tokens=True))

    def test_streams_the_same_text(self):
        line = self.generate(self.step, "--prompt", "The quick", "--json", "--ignore-eos")[0]
        run = titan("generate", "--checkpoint", self.step, "--prompt", "The quick", "--ignore-eos")
        self.assertEqual(run.returncode, 0, run.stderr)
        shown = [part for part in line["text"].splitlines() if part.isascii() and part.isprintable()]
        self.assertTrue(shown)
        self.assert_holds(run.stdout, *shown)
        self.assertIn("64 tokens after", run.stderr)

    def test_stops_at_a_string(self):
        text = self.generate(self.step, "--prompt", "The quick", "--json", "--ignore-eos")[0]["text"]
        word = next(word for word in text[10:].split() if word.isascii() and len(word) > 3)
        line = self.generate(self.step, "--prompt", "The quick", "--json", "--ignore-eos", "--stop", "never there", "--stop", word)[0]
        self.assertEqual(line["text"], text[:text.index(word)])

    def test_goes_on_with_each_line_of_standard_input(self):
        run = subprocess.run([TITAN, "generate", "--checkpoint", self.step, "--json", "--max-new-tokens", "3"], cwd=ROOT, timeout=HANG,
                             env=environment(), input="The quick\n\nfox\n", capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual([line["prompt_ids"] for line in lines], [self.tokenizer(text).input_ids for text in ("The quick", "fox")])


class OwnQwen3Test(GenerateCase):
    QWEN3 = ["--model.name", "qwen3", "--model.dim", 64, "--model.n_layers", 2, "--model.n_heads", 4, "--model.n_kv_heads", 2,
             "--model.head_dim", 32, "--model.hidden_dim", 96]

    def test_equals_transformers_on_its_export(self):
        self.train(*OwnCheckpointTest.SAVED, *OwnCheckpointTest.LORA, *self.QWEN3)
        step = self.out / "checkpoint" / "step-3"
        run = titan("convert", "to-hf", step, self.folder / "exported")
        self.assertEqual(run.returncode, 0, run.stderr)
        model = Qwen3ForCausalLM.from_pretrained(self.folder / "exported", dtype=torch.float32, local_files_only=True).eval()
        self.assertTrue(model.config.tie_word_embeddings)
        prompts = prompts_of(5, 17)
        for source in (step, self.folder / "exported"):
            lines = self.generate(source, "--prompts", self.prompts_file(prompts), "--json", "--ignore-eos", "--max-new-tokens", 40)
            self.assertEqual([line["ids"] for line in lines], [greedy(model, prompt, 40) for prompt in prompts])


class BadInputTest(GenerateCase):
    def refused(self, *arguments, code=2):
        return self.generate(self.folder / "hf", *arguments, code=code).stderr

    def test_what_cannot_be_used_is_named(self):
        make_model(self.folder / "hf")
        prompts = self.prompts_file([[5] * 500, [], [7, VOCAB], [3]])
        self.assert_holds(self.refused("--prompts", prompts), f"{prompts}:1: a prompt of 500 tokens and --max-new-tokens 64 are more than",
                          "context of 512", f"{prompts}:2: an empty prompt", f"{prompts}:3: id {VOCAB} is not below the model's vocabulary size {VOCAB}")
        self.assert_holds(self.refused("--prompt", "text"), "--prompt: text, but there is no tokenizer", "--model.hf_assets_path")
        self.assert_holds(self.refused("--prompt", "", "--model.hf_assets_path", TOKENIZER), "--prompt: an empty prompt")
        broken = self.write("broken.jsonl", '{"prompt": "a"}\n{"prompt"\n\n{"text": "a"}\n{"prompt_ids": [1, "x"]}\n')
        self.assert_holds(self.refused("--prompts", broken, code=1), "broken.jsonl:2: malformed JSON", "broken.jsonl:4: expected \"prompt\"",
                          "broken.jsonl:5: \"prompt_ids\" holds \"x\"")
        self.assert_holds(self.refused("--prompt", "a", "--temperature", 0, "--top-p", 1.5, "--num-samples", 0),
                          "--temperature must be > 0", "--top-p must be > 0 and <= 1, got 1.5", "--num-samples must be >= 1")
        self.assert_holds(self.refused("--prompt", "a", "--top-k", 3), "--top-k needs a --temperature")
        self.assert_holds(self.refused("--prompt", "a", "--no-such-flag", 3), "--no-such-flag", "see: titan generate --help")
        self.assert_holds(self.refused("--prompts", self.write("none.txt", "\n"), code=1), "none.txt", "holds no prompt")

    def test_prompts_are_checked_before_weights_are_read(self):
        make_model(self.folder / "hf")
        weights = self.folder / "hf" / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1000])
        error = self.refused("--prompts", self.prompts_file([[5] * 500]))
        self.assert_holds(error, "a prompt of 500 tokens")
        self.assertNotIn("safetensors", error)

    def test_a_folder_that_is_no_model_is_named(self):
        run = titan("generate", "--checkpoint", self.folder / "nothing", "--prompt", "a")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "there is no folder", "nothing")
        run = titan("generate", "--checkpoint", self.folder, "--prompt", "a")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "holds no manifest.json, no Hugging Face weights and no complete step")
        make_model(self.folder / "hf")
        config = json.loads((self.folder / "hf" / "config.json").read_text())
        self.write("hf/config.json", json.dumps(config | {"model_type": "mamba"}))
        self.assert_holds(self.refused("--prompt", "a"), 'model_type "mamba" is known to none of the installed models', "llama3")

    def test_layouts_that_cannot_generate_say_so(self):
        make_model(self.folder / "hf")
        run = self.generate(self.folder / "hf", "--prompts", self.prompts_file([[3, 4]]), "--parallelism.context_parallel_degree", 2,
                            ranks=2, code=2)
        self.assert_holds(run.stderr, "tokens cannot be generated while 'context parallelism' computes attention")


class ChatTest(GenerateCase):
    TEMPLATE = ("{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}\n{% endfor %}"
                "{% if add_generation_prompt %}assistant: {% endif %}")
    FLAGS = ["--chat", "--max-new-tokens", 12, "--json", "--ignore-eos"]

    def setUp(self):
        super().setUp()
        self.model = make_model(self.folder / "hf")
        self.tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
        self.tokenizer.chat_template = self.TEMPLATE
        self.tokenizer.save_pretrained(self.folder / "hf")

    def prompt_ids(self, *messages):
        text = self.tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=False)
        return self.tokenizer.encode(text, add_special_tokens=False)

    def user(self, text):
        return {"role": "user", "content": text}

    def test_prompts_and_conversations_are_rendered_as_transformers_does(self):
        talk = [{"role": "system", "content": "Be <|end_of_text|> brief."}, self.user("Hello"), {"role": "assistant", "content": "Hi"},
                self.user("and now?")]
        file = self.write("talks.jsonl", json.dumps({"messages": talk}) + "\n" + json.dumps({"prompt": "Hello"}) + "\n")
        for ranks, layout in ((1, []), (2, ["--parallelism.tensor_parallel_degree", "2"])):
            lines = self.generate(self.folder / "hf", "--prompt", "a word", "--prompts", file, *self.FLAGS, *layout, ranks=ranks)
            expected = [self.prompt_ids(self.user("a word")), self.prompt_ids(*talk), self.prompt_ids(self.user("Hello"))]
            self.assertEqual([line["prompt_ids"] for line in lines], expected)
            self.assertEqual(lines[1]["ids"], greedy(self.model, expected[1], tokens=12))

    def test_lines_go_on_with_a_conversation_and_an_empty_one_begins_anew(self):
        run = subprocess.run([TITAN, "generate", "--checkpoint", self.folder / "hf", *map(str, self.FLAGS)],
                             input="Hello\nand now?\n\nagain\n", env=environment(), cwd=ROOT, timeout=HANG, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        first, second, third = (json.loads(line) for line in run.stdout.splitlines())
        self.assertEqual(first["prompt_ids"], self.prompt_ids(self.user("Hello")))
        answer = {"role": "assistant", "content": first["text"]}
        self.assertEqual(second["prompt_ids"], self.prompt_ids(self.user("Hello"), answer, self.user("and now?")))
        self.assertEqual(third["prompt_ids"], self.prompt_ids(self.user("again")))

    def test_what_cannot_be_rendered_is_named(self):
        file = self.write("talks.jsonl", json.dumps({"messages": [self.user("Hello")]}) + "\n" + json.dumps({"messages": []}) + "\n")
        run = self.generate(self.folder / "hf", "--prompts", file, code=2)
        self.assert_holds(run.stderr, "talks.jsonl:1", "--chat")
        run = self.generate(self.folder / "hf", "--prompts", file, *self.FLAGS, code=2)
        self.assert_holds(run.stderr, "talks.jsonl:2", "no messages")
        (self.folder / "hf/chat_template.jinja").unlink()
        run = self.generate(self.folder / "hf", "--prompts", file, *self.FLAGS, code=1)
        self.assert_holds(run.stderr, "no chat template in", "chat_template.jinja")


if __name__ == "__main__":
    main()
