"""Fine-tuning on conversations: the loss masks are those of transformers and TRL, packing does not change
the loss, a run resumes where it stopped, and unusable data are reported before anything starts."""

import json
import math

import before_transformers

import torch
import transformers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from checkpoint_case import SMALL, CheckpointCase
from harness import ROOT, losses, main, metrics, thorough, titan
from ranks_test import fingerprints

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

VOCAB = 2050
IGNORED = -100
# Templates with the marks that transformers' masks need; Titan's templates have the same text without the
# marks.
CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
          "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
          "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
BRACKETS = ("{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}"
            "{% generation %}{{ ' ' + message['content'] + eos_token }}{% endgeneration %}"
            "{% else %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% endif %}{% endfor %}")
DROPPING = ("{% for message in messages %}{{ message['role'] + ': ' }}"
            "{{ message['content'] if loop.last or message['role'] != 'assistant' else '...' }}{{ eos_token }}{% endfor %}"
            "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}")
WORDS = [json.loads(line)["text"] for line in (ROOT / "tests/assets/corpus/validation.jsonl").read_text().splitlines()][:40]


class FinetuneCase(CheckpointCase):
    def setUp(self):
        super().setUp()
        self.assets = self.folder / "assets"
        self.tokenizer = AutoTokenizer.from_pretrained(ROOT / "tests/assets/tokenizer")
        self.tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
        torch.manual_seed(3)
        self.model = LlamaForCausalLM(LlamaConfig(
            hidden_size=64, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            vocab_size=VOCAB, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
            max_position_embeddings=2048, initializer_range=0.08, attn_implementation="eager", bos_token_id=2046,
            eos_token_id=2047)).eval()
        self.model.save_pretrained(self.assets)
        self.use_template(CHATML)
        self.recipe = [*SMALL, "--training.global_batch_size", 1, "--model.vocab_size", VOCAB, "--model.multiple_of", 64,
                       "--model.rope_scaling.scaling_factor", 1, "--model.hf_assets_path", self.assets,
                       "--checkpoint.initial_load_in_hf", "--checkpoint.initial_load_path", self.assets,
                       "--training.dataset", "messages", "--data.packing", "best_fit", "--data.isolate_documents",
                       "--chat_template.name", "jinja"]

    def use_template(self, template):
        self.template = template
        self.tokenizer.save_pretrained(self.assets)
        for mark in ("{% generation %}", "{% endgeneration %}"):
            template = template.replace(mark, "")
        (self.assets / "chat_template.jinja").write_text(template)

    def lines(self, *objects, name="data.jsonl"):
        return ["--training.dataset_path", self.write(name, "".join(json.dumps(line) + "\n" for line in objects))]

    def labels_of(self, messages):
        """Ids, and labels at the same indices, as TRL's assistant-only loss gets them from transformers."""
        found = self.tokenizer.apply_chat_template(messages, chat_template=self.template, return_assistant_tokens_mask=True,
                                                   return_dict=True, tokenize=True)
        ids = found["input_ids"]
        return ids, [token if learned else IGNORED for token, learned in zip(ids, found["assistant_masks"], strict=True)]

    def completion_labels(self, prompt, completion):
        """Labels that TRL's SFTTrainer makes of a prompt and a completion as texts, with completion_only_loss. None if it would
        warn that the ids of the prompt do not begin those of both."""
        before = self.tokenizer(prompt)["input_ids"]
        ids = self.tokenizer(prompt + completion + self.tokenizer.eos_token)["input_ids"]
        return None if ids[:len(before)] != before else (ids, [IGNORED] * len(before) + ids[len(before):])

    def judge(self, examples):
        """Sum of the losses and number of targets of each (ids, labels), by transformers."""
        found = []
        for ids, labels in examples:
            with torch.no_grad():
                logits = self.model(torch.tensor([ids])).logits[0, :-1]
            targets = torch.tensor(labels[1:])
            total = torch.nn.functional.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="sum")
            found.append((total.item(), int((targets != IGNORED).sum())))
        return found

    def leave(self, steps, seq_len, *arguments):
        """A run that does not change the weights."""
        self.run_ranks(1, *arguments, "--training.steps", steps, "--training.seq_len", seq_len, "--optimizer.lr", "1e-30")

    def assert_losses(self, found, wanted):
        self.assertEqual(len(found), len(wanted))
        for step, (ours, theirs) in enumerate(zip(found, wanted, strict=True), 1):
            self.assertAlmostEqual(ours, theirs, delta=2e-6 * abs(theirs), msg=f"step {step}")

    def draw_chat(self, random, turns):
        """Questions and answers from the corpus, some with blanks and line breaks at the boundaries of template texts."""
        def words():
            text = random.choice(WORDS)
            begin = random.randrange(max(1, len(text) - 80))
            return (random.choice(["", "", "\n", "\n\n", " ", "  "]) + text[begin:begin + random.randrange(20, 80)].strip() +
                    random.choice(["", "", "\n", " "]))

        messages = [{"role": "system", "content": words()}] if random.random() < 0.5 else []
        for _ in range(turns):
            messages += [{"role": "user", "content": words()}, {"role": "assistant", "content": words()}]
        return messages


class MasksTest(FinetuneCase):
    """One conversation fills more than half of a sequence, so each step has one, in the order of the file."""

    LONGEST = 321

    def compare(self, examples, lines, *arguments):
        self.leave(len(examples), self.LONGEST - 1, *self.lines(*lines), *arguments)
        self.assert_losses(losses(self.out), [total / count for total, count in self.judge(examples)])

    def fitting(self, draw, count=24):
        """`count` random conversations whose ids fill more than half of a sequence and fit it."""
        found = []
        while len(found) < count:
            line, example = draw()
            if example and self.LONGEST // 2 < len(example[0]) <= self.LONGEST:
                found.append((line, example))
        return zip(*found)

    def chats(self, random):
        def draw():
            messages = self.draw_chat(random, random.randrange(1, 5))
            return {"messages": messages}, self.labels_of(messages)

        return self.fitting(draw)

    def test_answers_are_those_of_transformers_masks(self):
        random = self.chance()
        for template in (CHATML, BRACKETS):
            with self.subTest(template[:20]):
                self.use_template(template)
                self.out = self.folder / f"out_{template[5]}_{len(template)}"
                lines, examples = self.chats(random)
                self.assertTrue(any(IGNORED in labels for _, labels in examples))
                self.compare(examples, lines)

    def test_the_last_answer_alone_is_learned_when_asked(self):
        def last(ids, labels):
            behind = max(i for i, label in enumerate(labels) if label != IGNORED) + 1
            begin = max((i for i, label in enumerate(labels[:behind]) if label == IGNORED)) + 1
            return ids, [IGNORED] * begin + labels[begin:]

        lines, examples = self.chats(self.chance())
        self.compare([last(*example) for example in examples], lines, "--dataset.messages.learn", "last")

    def test_preferences_are_two_answers_to_one_prompt(self):
        random = self.chance()

        def draw():
            start = self.draw_chat(random, random.randrange(2))
            start.append({"role": "user", "content": random.choice(WORDS)[:60]})
            answers = [[{"role": "assistant", "content": random.choice(WORDS)[:random.randrange(40, 120)] + end}] for end in "ab"]
            whole = [self.labels_of(start + answer) for answer in answers]
            before = len(self.tokenizer.apply_chat_template(start, chat_template=self.template, add_generation_prompt=True,
                                                            return_dict=True)["input_ids"])
            masked = [(ids, [IGNORED] * before + labels[before:]) for ids, labels in whole]
            line = {"prompt": start, "chosen": answers[0], "rejected": answers[1]}
            if random.random() < 0.5:  # both begin with the prompt
                line = {"chosen": start + answers[0], "rejected": start + answers[1]}
            return line, masked

        found = []
        while len(found) < 16:
            line, pair = draw()
            if self.LONGEST // 2 < sum(len(ids) for ids, _ in pair) <= self.LONGEST:
                found.append((line, pair))
        self.leave(len(found), self.LONGEST - 1, *self.lines(*(line for line, _ in found)), "--loss.name", "dpo", "--loss.reference_free")
        for answer, name in enumerate(("chosen", "rejected")):
            with self.subTest(name):
                self.assert_losses([-line[f"loss_metrics/logps/{name}"] for line in metrics(self.out)],
                                   [self.judge(pair)[answer][0] for _, pair in found])

    def test_completions_are_those_of_trl(self):
        random = self.chance()

        def draw():
            text = " ".join(random.sample(WORDS, 3))[:random.randrange(400, 1000)]
            cut = text.find(" ", random.randrange(len(text)))
            prompt, completion = text[:cut], text[cut:]
            return {"prompt": prompt, "completion": completion}, self.completion_labels(prompt, completion)

        lines, examples = self.fitting(draw)
        self.compare(examples, lines)


class PackingTest(FinetuneCase):
    def test_conversations_in_one_sequence_have_the_loss_they_have_alone(self):
        random = self.chance()
        chats = [self.draw_chat(random, random.randrange(1, 4)) for _ in range(50)]
        lines = [{"messages": messages} for messages in chats]
        examples = [self.labels_of(messages) for messages in chats]
        judged = self.judge(examples)
        total, count = sum(part for part, _ in judged), sum(part for _, part in judged)
        path = self.lines(*lines)[1]
        said = sum(len(self.tokenizer.decode([label for label in labels if label != IGNORED], skip_special_tokens=True).encode())
                   for _, labels in examples)
        for seq_len in (1024, 2048):
            self.out = self.folder / str(seq_len)
            self.leave(1, seq_len, "--training.dataset_path", path, "--validation.enable", "--validation.dataset", "messages",
                       "--validation.dataset_path", path, "--validation.steps", -1, "--validation.seq_len", seq_len,
                       "--validation.local_batch_size", 1)
            found = [line for line in metrics(self.out) if "validation_metrics/loss" in line][0]
            self.assertAlmostEqual(found["validation_metrics/loss"], total / count, delta=2e-6 * total / count)
            self.assertAlmostEqual(found["validation_metrics/bits_per_byte"], total / math.log(2) / said, delta=1e-5)


class RunsTest(FinetuneCase):
    """Resume, layouts, skipped conversations."""

    def setUp(self):
        super().setUp()
        random = self.chance()
        self.data = self.lines(*({"messages": self.draw_chat(random, random.randrange(1, 4))} for _ in range(60)))
        self.learn = [*self.data, "--training.global_batch_size", 4, "--training.seq_len", 700, "--optimizer.lr", "1e-3",
                      "--data.shuffle"]

    def test_a_run_goes_on_exactly_under_other_ranks(self):
        self.run_ranks(1, *self.learn, "--training.steps", 6)
        straight, tokens = losses(self.out), tokens_by_step(self.out)
        self.assertEqual(len(set(straight)), 6)
        self.out = self.folder / "stopped"
        self.run_ranks(1, *self.learn, "--training.steps", 3, "--checkpoint.interval", 3)
        self.run_ranks(2, *self.learn, "--training.steps", 6, "--checkpoint.interval", 3)
        for found, wanted in zip(losses(self.out), straight, strict=True):
            self.assertAlmostEqual(found, wanted, delta=1e-5 * wanted)
        self.assertEqual(tokens_by_step(self.out), tokens)

    @thorough
    def test_layouts_learn_the_same(self):
        even = ["--training.local_batch_size", 2, "--checkpoint.interval", 100]
        self.run_ranks(1, *self.learn, *even)
        wanted, tokens = losses(self.out), tokens_by_step(self.out)
        for name, layout in {"fsdp": ["--parallelism.data_parallel_shard_degree", 2],
                             "tensor": ["--parallelism.tensor_parallel_degree", 2],
                             "pipeline": ["--parallelism.pipeline_parallel_degree", 2],
                             "context": ["--parallelism.context_parallel_degree", 2]}.items():
            with self.subTest(name):
                self.out = self.folder / name
                self.run_ranks(2, *self.learn, *even, *layout)
                for found, one_rank in zip(losses(self.out), wanted, strict=True):
                    self.assertAlmostEqual(found, one_rank, delta=1e-5 * one_rank)
                self.assertEqual(tokens_by_step(self.out), tokens)

    def test_what_is_too_long_is_an_error_or_left_out(self):
        short = ["--training.seq_len", 60]
        run = self.run_ranks(1, *self.learn, *short, code=1)
        self.assert_holds(run.stderr, "more than the 61 that fit training.seq_len", "data.too_long", "error: data.jsonl:")
        run = self.run_ranks(1, *self.learn, *short, "--data.too_long", "skip")
        self.assert_holds(run.stdout + run.stderr, "document was left out, longer than a sequence (61 tokens)")


def tokens_by_step(folder):
    """{step: hash of the step's tokens, whatever the layout}."""
    return {line["step"]: line["tokens"] for line in map(json.loads, fingerprints(folder).splitlines()) if "tokens" in line}


class BadInputTest(FinetuneCase):
    CHAT = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}

    def refused(self, *arguments, recipe=None, command="train"):
        words = ["--job.dump_folder", self.out, *(recipe or self.recipe), *arguments]
        run = titan(command, *map(str, words))
        self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
        self.assert_nothing_was_written()
        return run.stderr

    def test_what_is_missing_for_conversations_is_said_at_once(self):
        without = [word for word in self.recipe if word not in ("--chat_template.name", "jinja", "--data.packing", "best_fit",
                                                                "--data.isolate_documents")]
        for dry in ([], ["--dry-run"]):
            self.assert_holds(self.refused(*self.lines(self.CHAT), *dry, recipe=without),
                              "data source 'messages' holds chats, but the job has no chat template; set "
                              "chat_template.name = \"jinja\"",
                              "which data.packing = \"concatenate\" would cut; set data.packing = \"best_fit\"",
                              "which must not see each other; set data.isolate_documents = true", "3 errors; nothing was started")

    def test_a_broken_line_is_named(self):
        run = self.run_ranks(1, *self.lines(self.CHAT, {"messages": [{"role": "user", "content": "a"}]}), code=1)
        self.assert_holds(run.stderr, "data.jsonl:2: no message has the role 'assistant', so nothing would contribute to the loss")
        self.assert_nothing_was_written()

    def test_a_template_that_changes_what_it_has_rendered_is_refused(self):
        self.use_template(DROPPING)
        chat = {"messages": 2 * self.CHAT["messages"]}
        run = self.run_ranks(1, *self.lines(chat), code=1)
        self.assert_holds(run.stderr, "the chat template renders message 2 differently when other messages follow", "data.jsonl:1")
        self.run_ranks(1, *self.lines(chat), "--dataset.messages.learn", "last")

    def test_conversations_cannot_be_stored_as_tokens(self):
        words = ["--output", self.folder / "tokens", "--training.dataset", "messages", *self.lines(self.CHAT),
                 "--model.hf_assets_path", self.assets]
        run = titan("tokenize", *map(str, words))
        self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
        self.assert_holds(run.stderr, "data set 'messages' holds conversations")


if __name__ == "__main__":
    main()
