"""Compares `titan chat-template` with transformers' apply_chat_template: the templates of real models on random conversations, their texts
and ids, and whether they are refused; and each filter, test, method and operator of the template language separately."""

import datetime
import json
import os
import pathlib
import random
import re
import unittest

import transformers.utils.chat_template_utils as reference
from tokenizers import AddedToken
from transformers import AutoTokenizer

from drawn_conversations import Drawn
from harness import ROOT, SEED, Case, main, thorough, titan

ASSETS = ROOT / "tests/assets/tokenizer"
TEMPLATES = pathlib.Path(os.environ.get("TITAN_CHAT_TEMPLATES") or ROOT / ".venv/share/chat_templates")
FAMILIES = ["meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.3-70B-Instruct", "Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B",
            "google-gemma-2-2b-it", "mistralai-Mistral-Nemo-Instruct-2407", "microsoft-Phi-3.5-mini-instruct", "deepseek-ai-DeepSeek-V3.1",
            "openai-gpt-oss-120b", "ibm-granite-granite-4.0", "Kimi-K2-Instruct", "HuggingFaceTB-SmolLM3-3B"]
DATE = "2026-07-26"
# Texts in templates that are single tokens of their models.
SPELLED = re.compile(r"<[|｜][^|｜<>{}'\"\n]{1,40}[|｜]>|\[/?[A-Z_]{3,20}\]|</?(?:think|tool_call|s)>")


class Noon(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 7, 26, 12)


def setUpModule():
    reference.datetime = Noon


def rendered(tokenizer, conversation, prompt):
    """The result of apply_chat_template, or None if it refuses."""
    known = {name: value for name, value in conversation.items() if name != "messages"}
    try:
        text = tokenizer.apply_chat_template(conversation["messages"], add_generation_prompt=prompt, tokenize=False, **known)
    except Exception:  # errors of Jinja2, of Python, of the template
        return None
    return {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False)}


class ChatTemplateCase(Case):
    def render(self, assets, conversations, *flags, code=None):
        file = self.folder / "conversations.jsonl"
        file.write_text("".join(json.dumps(conversation) + "\n" for conversation in conversations))
        run = titan("chat-template", "--assets", assets, "--conversations", file, "--chat_template.date", DATE, *flags)
        if code is not None:
            self.assertEqual(run.returncode, code, run.stderr)
        self.assertIn(run.returncode, (0, 1), run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def write_assets(self, name, template):
        """A folder as transformers saves it: the bundled tokenizer, and the template's special tokens of each kind."""
        tokenizer = AutoTokenizer.from_pretrained(ASSETS)
        chance = random.Random(name)
        tokens = [AddedToken(text, special=True, lstrip=chance.random() < 0.2, rstrip=chance.random() < 0.2,
                             normalized=chance.random() < 0.2, single_word=chance.random() < 0.1)
                  for text in sorted({match for match in SPELLED.findall(template + " <|im_end|> <s> [INST] </think>")})]
        tokenizer.add_special_tokens({"additional_special_tokens": tokens})
        tokenizer.chat_template = template
        folder = self.folder / name
        tokenizer.save_pretrained(folder)
        return folder


@unittest.skipUnless((TEMPLATES / ".complete").exists(), f"no templates in {TEMPLATES}: tools/setup.sh --test fetches them")
class RealTemplatesTest(ChatTemplateCase):
    def compare(self, name, count):
        folder = self.write_assets(name, (TEMPLATES / f"{name}.jinja").read_text())
        tokenizer = AutoTokenizer.from_pretrained(folder)
        refused = 0
        for prompt in (False, True):
            conversations = [Drawn(f"{SEED} {number} {prompt}").conversation() for number in range(count // 2)]
            results = self.render(folder, conversations, "--ids", *(["--generation-prompt"] if prompt else []))
            self.assertEqual(len(results), len(conversations))
            for conversation, result in zip(conversations, results):
                expected = rendered(tokenizer, conversation, prompt)
                where = f"{name}, generation prompt {prompt}: {json.dumps(conversation)}; {result}"
                self.assertEqual("error" in result, expected is None, where)
                if expected is not None:
                    self.assertEqual(result, expected, where)
                refused += expected is None
        return refused

    def test_families_of_models_give_the_same_texts_and_ids_and_refuse_the_same(self):
        refused = 0
        for name in FAMILIES:
            with self.subTest(name):
                refused += self.compare(name, 200)
        self.assertGreater(refused, 20, "the drawn conversations hardly meet a refusal")

    @thorough
    def test_so_does_every_other_template(self):
        names = sorted(file.stem for file in TEMPLATES.glob("*.jinja"))
        self.assertGreaterEqual(len(names), 70)
        for name in names:
            if name not in FAMILIES:
                with self.subTest(name):
                    self.compare(name, 20)


class LanguageTest(ChatTemplateCase):
    """Each line of template_language.txt is a template, "↵" the end of a line. Both must give the same text, or both refuse."""

    @thorough
    def test_every_construct_computes_as_jinja2_does(self):
        lines = (ROOT / "tests/end_to_end/template_language.txt").read_text().split("\n")
        templates = [line.replace("↵", "\n") for line in lines if line and not line.startswith("#!")]
        folder = self.folder / "assets"
        (folder / "additional_chat_templates").mkdir(parents=True)
        (folder / "chat_template.jinja").write_text("unused")
        variables = json.loads((ROOT / "tests/end_to_end/template_variables.json").read_text())
        conversation = {"messages": [{"role": "user", "content": "Hi"}], **variables}
        for number, template in enumerate(templates):
            with self.subTest(template):
                (folder / "additional_chat_templates/one.jinja").write_text(template)
                run = titan("chat-template", "--assets", folder, "--chat_template.template_name", "one", "--chat_template.date", DATE,
                            "--conversations", self.conversation_file(conversation))
                try:
                    expected = reference.render_jinja_template([conversation["messages"]], chat_template=template, **variables)[0][0]
                except Exception as error:
                    self.assertNotEqual(run.returncode, 0, f"refused by Jinja2: {error!r}; got {run.stdout}")
                    continue
                self.assertEqual(run.returncode, 0, f"{run.stderr} {run.stdout}; expected {expected!r}")
                self.assertEqual(json.loads(run.stdout)["text"], expected)

    def conversation_file(self, conversation):
        file = self.folder / "one.jsonl"
        file.write_text(json.dumps(conversation) + "\n")
        return file


class FolderTest(ChatTemplateCase):
    conversation = {"messages": [{"role": "user", "content": "Hi"}]}

    def assets(self, **files):
        folder = self.folder / "assets"
        for name, content in files.items():
            path = folder / name.replace("__", "/").replace("_jinja", ".jinja").replace("_json", ".json")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return folder

    def text(self, folder, *flags, **more):
        return self.render(folder, [{**self.conversation, **more}], *flags, code=0)[0]["text"]

    def refusal(self, folder, *flags):
        run = titan("chat-template", "--assets", folder, "--conversations", os.devnull, *flags)
        self.assertNotEqual(run.returncode, 0)
        return run.stderr

    def test_a_file_goes_before_the_configuration_and_an_option_before_both(self):
        folder = self.assets(tokenizer_config_json={"chat_template": "of the configuration"})
        self.assertEqual(self.text(folder), "of the configuration")
        self.assets(chat_template_jinja="of the file")
        self.assertEqual(self.text(folder), "of the file")
        (self.folder / "own.jinja").write_text("of the option")
        self.assertEqual(self.text(folder, "--chat_template.file", self.folder / "own.jinja"), "of the option")

    def test_tools_choose_the_template_for_tools(self):
        both = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]
        folder = self.assets(tokenizer_config_json={"chat_template": both})
        self.assertEqual(self.text(folder), "plain")
        self.assertEqual(self.text(folder, tools=[]), "tools")
        self.assertEqual(self.text(folder, "--chat_template.template_name", "default", tools=[]), "plain")

    def test_special_tokens_are_texts_or_tokens_with_properties(self):
        folder = self.assets(chat_template_jinja="{{ bos_token }}{{ eos_token }}{{ image_token }}{{ unk_token }}.",
                             tokenizer_config_json={"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False},
                                                    "extra_special_tokens": {"image_token": "<img>"}})
        self.assertEqual(self.text(folder), "<s></s><img>.")

    def test_what_is_missing_or_wrong_is_named(self):
        folder = self.assets(tokenizer_config_json={})
        self.assert_holds(self.refusal(folder), "no chat template in", "chat_template.jinja", "tokenizer_config.json")
        self.assert_holds(self.refusal(self.assets(chat_template_jinja="a\n{% if %}")), "chat_template.jinja", "line 2", "expected")
        self.assert_holds(self.refusal(self.assets(chat_template_jinja="{{ a|unknown }}")), "line 1", "No filter named 'unknown'")
        self.assets(chat_template_jinja="fine")
        self.assert_holds(self.refusal(folder, "--chat_template.template_name", "rag"), "'rag'", "'default'", "template_name")
        self.assert_holds(self.refusal(folder, "--chat_template.file", "none.jinja"), "none.jinja", "no such file")
        self.assert_holds(self.refusal(folder, "--chat_template.date", "today"), "today", "2026-07-26")
        self.assert_holds(self.refusal(folder, "--chat_template.name", "ninja"), "ninja", "jinja")

    def test_a_refused_conversation_is_an_object_and_an_exit_code(self):
        folder = self.assets(chat_template_jinja="\n{{ raise_exception('not in ' ~ messages[0].role) }}")
        results = self.render(folder, [self.conversation, {"messages": []}, {}], code=1)
        self.assert_holds(results[0]["error"], "line 2", "not in user")
        self.assert_holds(results[1]["error"], "no messages")
        self.assert_holds(results[2]["error"], '"messages"')


if __name__ == "__main__":
    main()
