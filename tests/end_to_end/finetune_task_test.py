"""A small model learns a task from conversations with adapters only: pretrained on letters that are repeated or reversed, it is
asked in a chat to reverse three letters, and answers correctly for unseen letters. The merged export gives the same answers in
transformers."""

import json
import os
import random
import shutil

# the steps are small and other tests may run: more threads would wait for each other
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from harness import DEBUG_CONFIG, ROOT, Case, losses, main, titan

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

LETTERS = "bcdfghjklmnpqrstvwxz"
HELD_OUT = 100
TEMPLATE = ("{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}{{ ' ' + message['content'] + eos_token }}"
            "{% else %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% endif %}{% endfor %}")
RECIPE = ["--job.config_file", DEBUG_CONFIG, "--model.dim", 128, "--model.n_layers", 2, "--model.n_heads", 4, "--model.n_kv_heads", 4,
          "--training.seq_len", 256, "--training.local_batch_size", 4, "--optimizer.lr", "3e-3", "--metrics.no_enable_tensorboard",
          "--metrics.log_freq", 10, "--data.packing", "best_fit", "--data.isolate_documents", "--data.no_labels_cross_documents",
          "--data.shuffle", "--checkpoint.enable", "--checkpoint.last_save_model_only", "--checkpoint.last_save_in_hf"]
LORA = ["--model.converters", "lora", "--converter.lora.rank", 16, "--converter.lora.alpha", 32,
        "--converter.lora.targets", "wq,wk,wv,wo,w1,w2,w3"]


class TaskTest(Case):
    def setUp(self):
        super().setUp()
        self.assets = self.folder / "assets"
        shutil.copytree(ROOT / "tests/assets/tokenizer", self.assets)
        (self.assets / "chat_template.jinja").write_text(TEMPLATE)
        draw = random.Random(7)
        self.held_out = [draw.sample(LETTERS, 3) for _ in range(HELD_OUT)]

        def shown():
            while (letters := draw.sample(LETTERS, 3)) in self.held_out:
                pass
            return " ".join(letters), " ".join(reversed(letters))

        def lines(name, count, line):
            return self.write(name, "".join(json.dumps(line(*shown())) + "\n" for _ in range(count)))

        self.texts = lines("texts.jsonl", 20000, lambda letters, turned: {
            "text": f"{letters} again {letters}" if draw.random() < 0.5 else f"{letters} back {turned}"})
        self.chats = lines("chats.jsonl", 3000, lambda letters, turned: {"messages": [
            {"role": "user", "content": "turn " + letters}, {"role": "assistant", "content": turned}]})
        self.wanted = [" ".join(reversed(letters)) for letters in self.held_out]
        self.prompts = [f"[INST] turn {' '.join(letters)} [/INST]" for letters in self.held_out]

    def learn(self, name, steps, *arguments):
        """The exported folder in Hugging Face's format."""
        out = self.folder / name
        self.train(*map(str, [*RECIPE, "--model.hf_assets_path", self.assets, "--training.steps", steps, *arguments]), out=out,
                   config=[])
        print(f"{name}: loss {losses(out)[0]:.3f} to {losses(out)[-1]:.3f}", flush=True)
        return out / f"checkpoint/step-{steps}"

    def answers(self, folder):
        path = self.write("prompts.jsonl", "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in self.prompts))
        run = titan("generate", "--checkpoint", folder, "--prompts", path, "--max-new-tokens", "8", "--json", "--model.hf_assets_path",
                    self.assets)
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(line)["text"] for line in run.stdout.splitlines() if line.startswith("{")]

    def right(self, answers):
        self.assertEqual(len(answers), HELD_OUT)
        return sum(answer.strip() == wanted for answer, wanted in zip(answers, self.wanted))

    def theirs(self, folder):
        tokenizer = AutoTokenizer.from_pretrained(self.assets)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()
        found = []
        for letters in self.held_out:
            ids = tokenizer.apply_chat_template([{"role": "user", "content": "turn " + " ".join(letters)}], return_tensors="pt",
                                                add_generation_prompt=True, return_dict=True)["input_ids"]
            new = model.generate(ids, max_new_tokens=8, do_sample=False, eos_token_id=tokenizer.eos_token_id, pad_token_id=0)
            found.append(tokenizer.decode(new[0, ids.shape[1]:], skip_special_tokens=True))
        return found

    def test_adapters_learn_a_task_and_what_is_exported_does_it_elsewhere(self):
        base = self.learn("base", 400, "--training.dataset", "jsonl", "--training.dataset_path", self.texts)
        before = self.right(self.answers(base))
        tuned = self.learn("tuned", 250, "--training.dataset", "messages", "--training.dataset_path", self.chats,
                           "--chat_template.name", "jinja", "--checkpoint.initial_load_in_hf", "--checkpoint.initial_load_path", base,
                           *LORA)
        answers = self.answers(tuned)
        print(f"right of {HELD_OUT}: {before} before, {self.right(answers)} after", flush=True)
        self.assertLessEqual(before, 5)
        # between 88 and 99 over seeds and CPUs
        self.assertGreaterEqual(self.right(answers), 75)
        self.assertEqual(self.theirs(tuned), answers)


if __name__ == "__main__":
    main()
