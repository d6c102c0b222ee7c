"""`titan evaluate` and [validation] tasks compared with lm-evaluation-harness: the same folder, the same documents, the harness's own
model class and scores; every log-likelihood and score under every layout. Also invalid input."""

import json
import os
import pathlib
import shutil
import tempfile
import unittest
import unittest.mock

HOME = tempfile.mkdtemp(prefix="titan_harness_")
unittest.addModuleCleanup(shutil.rmtree, HOME, ignore_errors=True)
os.environ.update(HF_HOME=HOME, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import torch
import transformers
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from harness import ROOT, TINY, Case, main, metrics, thorough, titan

transformers.utils.logging.disable_progress_bar()

TOKENIZER = f"{ROOT}/tests/assets/tokenizer"
VOCAB, CONTEXT, NEAR, BOOTSTRAP = 2048, 96, 1e-4, 2000
SENTENCES = [json.loads(line)["text"] for line in (ROOT / "tests/assets/corpus/validation.jsonl").read_text().splitlines()[:40]]


def make_model(folder):
    torch.manual_seed(5)
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=64, intermediate_size=176, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, vocab_size=VOCAB,
        rms_norm_eps=1e-5, max_position_embeddings=CONTEXT, bos_token_id=2046, eos_token_id=2047)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.uniform_(0.5, 1.5) if "norm" in name else weight.mul_(2)
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def choices(count):
    """Choices whose sum, sum per character and sum per byte differ, and contexts that end with blanks."""
    words = ["no", "übermäßig naïve café", "the quick brown fox", "yes, of course", "日本語", "x"]
    return [{"question": SENTENCES[i][:30 + i], "options": [words[(i + j) % 6] for j in range(2 + i % 4)], "answer": i % 2,
             "blank": " " * (i % 3)} for i in range(count)]


def continuations(model, tokenizer, count):
    """Every second continuation is the model's own greedy one, if its text is tokenized to the same token."""
    documents = [{"context": "", "continuation": "In the beginning"}]
    for i in range(count):
        context = SENTENCES[i][:20 + i]
        ids = tokenizer(context).input_ids
        with torch.no_grad():
            best = model(torch.tensor([ids])).logits[0, -1].topk(40).indices.tolist()
        words = [tokenizer.decode([token]) for token in best]
        same = [word for word, token in zip(words, best) if tokenizer(context + word).input_ids == [*ids, token]]
        documents.append({"context": context, "continuation": same[0] if i % 2 and same else " and then"})
    return documents


def texts(count):
    """Texts shorter than the context, and several times as long."""
    return [{"text": " ".join(SENTENCES[i:i + 1 + 2 * (i % 3)]) + "\u00a0 end\n" * (i % 2)} for i in range(count)]


TEMPLATE = "Question: {{question}}{{blank}}\nAnswer:"
HEAD = "The following are questions.\n\n"


def task_files(folder, model, tokenizer):
    """The same three tasks for both: files for Titan, configurations for the harness."""
    data = {"mcq": choices(24), "say": continuations(model, tokenizer, 20), "text": texts(8), "shots": choices(30)[24:]}
    paths = {name: folder / f"{name}.jsonl" for name in data}
    for name, documents in data.items():
        paths[name].write_text("".join(json.dumps(document) + "\n" for document in documents))
    shutil.move(paths["mcq"], folder / "questions.jsonl")
    toml = folder / "mcq.toml"
    toml.write_text(f'dataset = "questions.jsonl"\ndoc_to_text = {json.dumps(TEMPLATE)}\ndoc_to_choice = "options"\n'
                    f'doc_to_target = "answer"\ndescription = {json.dumps(HEAD)}\nnum_fewshot = 1\nfewshot_dataset = "shots.jsonl"\n')
    plain = [folder / f"{name}.jsonl" for name in ("say", "text")]

    def task(name, kind, metrics, **more):
        files = {"test": str(paths[name] if name != "mcq" else folder / "questions.jsonl"), "shots": str(paths["shots"])}
        if name != "mcq":
            del files["shots"]
        return {"task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": files}, "test_split": "test",
                "output_type": kind, "metric_list": [{"metric": metric} for metric in metrics], **more}

    theirs = [task("mcq", "multiple_choice", ["acc", "acc_norm", "acc_bytes"], doc_to_text=TEMPLATE, doc_to_choice="options",
                   doc_to_target="answer", description=HEAD, num_fewshot=1, fewshot_split="shots",
                   fewshot_config={"sampler": "first_n"}),
              task("say", "loglikelihood", ["perplexity", "acc"], doc_to_text="context", doc_to_target="continuation"),
              task("text", "loglikelihood_rolling", ["word_perplexity", "byte_perplexity", "bits_per_byte"], doc_to_text="",
                   doc_to_target="text")]
    return [toml, *plain], theirs


def harness(model, tokenizer, tasks, max_length=CONTEXT, **more):
    """The harness, without reading the 14,000 files of its own tasks and without querying pip."""
    found = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=8, device="cpu", max_length=max_length, **more)
    with unittest.mock.patch("lm_eval.evaluator.add_env_info"):
        return simple_evaluate(found, tasks=tasks, log_samples=True, bootstrap_iters=BOOTSTRAP,
                               task_manager=TaskManager(include_defaults=False))


class EvaluateCase(Case):
    def evaluate(self, checkpoint, tasks, *arguments, ranks=1, code=0):
        """results.json; the whole run when `code` is not 0."""
        words = ["evaluate", "--checkpoint", checkpoint, "--output", self.folder / "results.json", "--log-samples",
                 "--bootstrap-iters", BOOTSTRAP, *arguments]
        for task in tasks:
            words += ["--tasks", task]
        if ranks > 1:
            words = ["launch", "--nproc", str(ranks), "--log-dir", self.folder / "logs", "--", *words]
        run = titan(*words)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        return run if code else json.loads((self.folder / "results.json").read_text())

    def assert_scores(self, found, expected, task):
        for name, value in expected.items():
            if name in ("name", "alias", "sample_len"):
                continue
            if isinstance(value, str):
                self.assertEqual(found[name], value, f"{task} {name}")
            else:
                self.assertLess(abs(found[name] - value), NEAR * max(1, abs(value)), f"{task} {name}")

    def assert_equals_harness(self, ours, theirs):
        for task, expected in theirs["results"].items():
            self.assertEqual(ours["results"][task]["sample_len"], expected["sample_len"])
            self.assert_scores(ours["results"][task], expected, task)
            self.assertEqual(ours["n-samples"][task], theirs["n-samples"][task])
            self.assertEqual(ours["n-shot"][task], theirs["n-shot"][task])
            self.assertEqual(ours["higher_is_better"][task], theirs["higher_is_better"][task])
            lines = [json.loads(line) for line in (self.folder / f"samples_{task}.jsonl").read_text().splitlines()]
            samples = theirs["samples"][task]
            self.assertEqual([line["doc"] for line in lines], [sample["doc"] for sample in samples])
            for line, sample in zip(lines, samples):
                self.assertEqual([list(one.values()) for one in line["arguments"].values()],
                                 [list(one) for one in sample["arguments"]])
                for found, wanted in zip(line["filtered_resps"], sample["filtered_resps"], strict=True):
                    if task == "text":
                        self.assertLess(abs(float(found) - wanted), NEAR * 10)  # sums over hundreds of tokens
                        continue
                    self.assertLess(abs(float(found[0]) - wanted[0]), NEAR)
                    self.assertEqual(found[1], str(wanted[1]))
                for metric in ("acc", "acc_norm", "acc_bytes"):
                    self.assertEqual(line.get(metric), sample.get(metric))


class FolderTest(EvaluateCase):
    """A Hugging Face folder."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="titan_"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        model, tokenizer = make_model(cls.shared / "hf")
        cls.files, cls.tasks = task_files(cls.shared, model, tokenizer)
        cls.theirs = harness(model, tokenizer, cls.tasks)

    def test_the_tasks_tell_models_apart(self):
        """Scores of exactly 0 or 1 would hide mistakes."""
        results = self.theirs["results"]
        for task, name in [("mcq", "acc"), ("mcq", "acc_norm"), ("mcq", "acc_bytes"), ("say", "acc")]:
            self.assertTrue(0 < results[task][f"{name},none"] < 1, results)
        self.assertEqual(len({results["mcq"][f"{name},none"] for name in ("acc", "acc_norm")}), 2)

    def test_equals_the_harness(self):
        self.assert_equals_harness(self.evaluate(self.shared / "hf", self.files), self.theirs)

    def test_the_size_of_batches_does_not_matter(self):
        for size in (17, 300):
            self.assert_equals_harness(self.evaluate(self.shared / "hf", self.files, "--batch-tokens", size), self.theirs)

    @thorough
    def test_equals_the_harness_under_every_layout(self):
        for degrees in [{"tensor_parallel": 2}, {"pipeline_parallel": 2}, {"data_parallel_shard": 2}, {"data_parallel_replicate": 2},
                        {"tensor_parallel": 2, "data_parallel_shard": 2}]:
            flags, ranks = [], 1
            for axis, degree in degrees.items():
                flags += [f"--parallelism.{axis}_degree", degree]
                ranks *= degree
            with self.subTest(**degrees):
                ours = self.evaluate(self.shared / "hf", self.files, "--batch-tokens", 256, *flags, ranks=ranks)
                self.assert_equals_harness(ours, self.theirs)

    def test_without_bos(self):
        model = LlamaForCausalLM.from_pretrained(self.shared / "hf", dtype=torch.float32, local_files_only=True).eval()
        theirs = harness(model, AutoTokenizer.from_pretrained(TOKENIZER), self.tasks, add_bos_token=False)
        self.assertNotEqual(theirs["results"]["text"], self.theirs["results"]["text"])
        self.assert_equals_harness(self.evaluate(self.shared / "hf", self.files, "--add-bos-token", "false"), theirs)

    def test_a_tokenizer_that_contradicts_itself_is_read_as_by_transformers(self):
        """The post-processor of tokenizer.json against add_bos_token; the harness asks transformers."""
        model = LlamaForCausalLM.from_pretrained(self.shared / "hf", dtype=torch.float32, local_files_only=True).eval()
        for puts_bos in (True, False):
            with self.subTest(puts_bos=puts_bos):
                folder = self.folder / f"hf_{puts_bos}"
                shutil.copytree(self.shared / "hf", folder)
                for name, changed in {"tokenizer_config.json": {"add_bos_token": not puts_bos},
                                      "tokenizer.json": {} if puts_bos else {"post_processor": None}}.items():
                    content = {**json.loads(pathlib.Path(TOKENIZER, name).read_text()), **changed}
                    (folder / name).write_text(json.dumps(content))
                theirs = harness(model, AutoTokenizer.from_pretrained(folder), self.tasks)
                self.assert_equals_harness(self.evaluate(folder, self.files), theirs)
                run = titan("evaluate", "--checkpoint", folder, "--tasks", self.files[0], "--limit", 1)
                self.assert_holds(run.stderr, f"add_bos_token is {str(not puts_bos).lower()}, but the post_processor of tokenizer.json")

    def test_shows_a_table_and_json(self):
        run = titan("evaluate", "--checkpoint", self.shared / "hf", "--tasks", self.files[0], "--limit", 5)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_holds(run.stdout, "task", "standard error", "mcq", "acc_bytes")
        run = titan("evaluate", "--checkpoint", self.shared / "hf", "--tasks", self.files[0], "--limit", 5, "--json")
        self.assertEqual(json.loads(run.stdout)["n-samples"]["mcq"], {"original": 24, "effective": 5})

    def test_what_cannot_be_used_is_named(self):
        broken = self.write("broken.jsonl", '{"text": "a"}\n{"text" "b"}\n')
        run = self.evaluate(self.shared / "hf", [broken, self.folder / "none.toml"], code=2)
        self.assert_holds(run.stderr, "broken.jsonl:2:11: malformed JSON", "none.toml", "nothing was started")
        long = self.write("long.jsonl", json.dumps({"context": "a", "continuation": " word" * 200}) + "\n")
        run = self.evaluate(self.shared / "hf", [long], code=2)
        self.assert_holds(run.stderr, "long.jsonl:1: the continuation has", "more than the 96")
        run = self.evaluate(self.shared / "hf", [long], "--limit", 0, "--max-length", 0, "--add-bos-token", "maybe", code=2)
        self.assert_holds(run.stderr, "--limit must be >= 1", "--max-length must be >= 1", "--add-bos-token must be one of 'auto', 'true', 'false', got 'maybe'")
        run = titan("evaluate", "--checkpoint", self.shared / "hf", "--tasks", self.files[0], "--max-length", 1000)
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "--max-length 1000 is more than the model's context of 96")


class ValidationTest(EvaluateCase):
    """The model that is trained, and its checkpoints."""

    SAVED = ["--checkpoint.enable", "--checkpoint.interval", 3, "--model.hf_assets_path", TOKENIZER, "--validation.seq_len", 64,
             "--training.global_batch_size", 4, "--model.dim", 64, "--model.n_layers", 4, "--model.n_heads", 4, "--model.n_kv_heads", 2]

    def test_a_run_logs_what_the_harness_finds_in_its_export(self):
        tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
        model, _ = make_model(self.folder / "other")  # used only to make the documents
        files, tasks = task_files(self.folder, model, tokenizer)
        flags = ["--validation.tasks", ",".join(map(str, files)), "--validation.tasks_freq", 3, *self.SAVED]
        run = self.train(*flags)
        self.assert_holds(run.stderr + run.stdout, "tasks after step 3: mcq acc", "; text word_perplexity")
        step = self.out / "checkpoint" / "step-3"
        run = titan("convert", "to-hf", step, self.folder / "exported")
        self.assertEqual(run.returncode, 0, run.stderr)
        exported = LlamaForCausalLM.from_pretrained(self.folder / "exported", dtype=torch.float32, local_files_only=True).eval()
        theirs = harness(exported, tokenizer, tasks, max_length=64)
        self.assert_equals_harness(self.evaluate(step, files, "--max-length", 64), theirs)
        for layout, more in [("alone", []), ("tp", ["--parallelism.tensor_parallel_degree", 2]),
                             ("fsdp", ["--parallelism.data_parallel_shard_degree", 2]),
                             ("pp", ["--parallelism.pipeline_parallel_degree", 2])]:
            with self.subTest(layout=layout):
                out = self.out
                if more:
                    out = self.train_on_two(layout, *flags, *more)
                self.assert_logged(out, theirs)

    def train_on_two(self, name, *arguments):
        out = self.folder / name
        run = titan("launch", "--nproc", 2, "--log-dir", self.folder / "logs", "--", "train", *TINY, "--job.dump_folder", out, *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return out

    def test_scores_do_not_change_the_run(self):
        tasks = self.write("tasks.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in SENTENCES[:5]))
        flags = [*self.SAVED, "--parallelism.data_parallel_shard_degree", 2]
        plain = self.train_on_two("plain", *flags)
        scored = self.train_on_two("scored", *flags, "--validation.tasks", tasks, "--validation.tasks_freq", 1)
        self.assertEqual(*([line["loss_metrics/global_avg_loss"] for line in metrics(out) if "loss_metrics/global_avg_loss" in line]
                           for out in (plain, scored)))
        found = [line["validation_metrics/tasks/bits_per_byte"] for line in metrics(scored)
                 if "validation_metrics/tasks/bits_per_byte" in line]
        self.assertEqual(len(found), 3)
        self.assertEqual(len(set(found)), 3)  # of three models

    def assert_logged(self, out, theirs):
        scored = [line for line in metrics(out) if any(name.startswith("validation_metrics/") for name in line)]
        self.assertEqual([line["step"] for line in scored], [3])
        for task, expected in theirs["results"].items():
            logged = {name.removeprefix(f"validation_metrics/{task}/") + ",none": value for name, value in scored[0].items()}
            self.assert_scores(logged, {name: value for name, value in expected.items()
                                                if value != "N/A" and not name.startswith("perplexity_stderr")}, task)

    def test_what_cannot_be_used_is_found_before_anything_starts(self):
        broken = self.write("broken.jsonl", '{"query": "a", "choices": ["b", "c"], "gold": 2}\n')
        flags = ["--validation.tasks", broken, *self.SAVED]
        for more in ([], ["--dry-run"]):
            run = self.train(*flags, *more, code=2)
            self.assert_holds(run.stderr, "broken.jsonl:1: the gold choice 2 is not in 0 to 1")
            self.assert_nothing_was_written()
        run = self.train(*flags, "--parallelism.context_parallel_degree", 2, "--dry-run", "--world-size", 2, code=2)
        self.assert_holds(run.stderr, "tasks cannot be scored under context parallelism")


if __name__ == "__main__":
    main()
