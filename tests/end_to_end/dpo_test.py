"""[loss] dpo and distillation compared with transformers and torch: curves of three steps, the same under every layout; the reference
model; configuration errors of both are found before the start."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import before_transformers

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

from harness import HANG, ROOT, TITAN, Case, main, metrics, thorough, titan

transformers.utils.logging.disable_progress_bar()

VOCAB, ROWS, LENGTH, SEQ_LEN, STEPS = 512, 4, 30, 64, 3  # two documents of 30 tokens fill a sequence of 65, with padding
TRAINING = {"lr": 3e-4, "weight_decay": 0.1, "max_norm": 1.0, "rows": ROWS, "length": LENGTH, "steps": STEPS}
DPO = {"loss": "dpo", "beta": 0.3, "label_smoothing": 0.1}
DISTILLATION = {"loss": "distillation", "temperature": 2.0, "alpha": 0.25, "divergence": "forward"}
REWARDS = ["rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen", "logps/rejected"]


MODEL = ["--model.dim", "64", "--model.n_layers", "2", "--model.n_heads", "4", "--model.n_kv_heads", "2", "--model.multiple_of", "64",
         "--model.vocab_size", str(VOCAB), "--checkpoint.enable", "--checkpoint.initial_load_in_hf", "--checkpoint.interval", "100"]
DATA = ["--training.dataset", "tokens", "--dataset.tokens.dtype", "int32", "--dataset.tokens.chunk_tokens", str(LENGTH), "--data.packing",
        "best_fit", "--data.isolate_documents", "--data.no_labels_cross_documents", "--training.seq_len", str(SEQ_LEN)]
STEP = ["--training.steps", str(STEPS), "--training.local_batch_size", "1", "--training.global_batch_size", str(ROWS), "--optimizer.lr",
        str(TRAINING["lr"]), "--optimizer.weight_decay", str(TRAINING["weight_decay"]), "--training.max_norm", str(TRAINING["max_norm"]),
        "--lr_scheduler.warmup_steps", "0", "--lr_scheduler.decay_ratio", "0", "--metrics.no_enable_tensorboard", "--debug.deterministic"]


def make_model(folder, seed, layers=2, vocab=VOCAB):
    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=64, intermediate_size=192, num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2, vocab_size=vocab,
        rms_norm_eps=1e-5, max_position_embeddings=131072, tie_word_embeddings=False,
        rope_parameters={"rope_theta": 500000.0, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 8192}))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" not in name:
                weight.mul_(4)
    model.save_pretrained(folder)


@functools.cache
def files():
    """Two models and the data, made once."""
    folder = tempfile.TemporaryDirectory(prefix="titan_")
    path = pathlib.Path(folder.name)
    make_model(path / "student", 1)
    make_model(path / "teacher", 2)
    make_model(path / "deeper", 3, layers=3)
    make_model(path / "other_words", 4, vocab=VOCAB // 2)
    ids = torch.randint(0, VOCAB, (LENGTH * ROWS * 2 * (STEPS + 3),), generator=torch.Generator().manual_seed(3), dtype=torch.int32)
    (path / "ids.bin").write_bytes(ids.numpy().tobytes())
    return folder, path


def file(name):
    return str(files()[1] / name)


@functools.cache
def expected(reference, **options):
    run = subprocess.run([sys.executable, ROOT / "tests/referee/preference_referee.py", file("student"), file(reference), file("ids.bin"),
                          json.dumps(TRAINING | options)], capture_output=True, text=True, timeout=HANG)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def options_of(loss):
    words = ["--loss.name", loss["loss"]]
    for name, value in loss.items():
        if name != "loss":
            words += [f"--loss.{name}", str(value)]
    return words


def train(out, *arguments, ranks=1):
    launch = ["launch", "--nproc", str(ranks), "--"] if ranks > 1 else []
    return titan(*launch, "train", "--job.config_file", "train_configs/debug_model.toml", "--job.dump_folder", out, *MODEL, *DATA, *STEP,
                 "--model.hf_assets_path", file("student"), "--training.dataset_path", file("ids.bin"), *arguments)


def curves(out, names):
    lines = [line for line in metrics(out) if "loss_metrics/global_avg_loss" in line]
    tags = {"loss": "loss_metrics/global_avg_loss", "norm": "grad_norm"} | {name: f"loss_metrics/{name}" for name in names}
    return [{name: line[tag] for name, tag in tags.items()} for line in lines]


LAYOUTS = [("tp", 2, ["--parallelism.tensor_parallel_degree", "2"]),
           ("pp", 2, ["--parallelism.pipeline_parallel_degree", "2", "--training.local_batch_size", "2"]),
           ("fsdp", 2, ["--parallelism.data_parallel_shard_degree", "2"]),
           ("ddp_tp", 4, ["--parallelism.data_parallel_replicate_degree", "2", "--parallelism.tensor_parallel_degree", "2",
                          "--parallelism.disable_loss_parallel", "--training.local_batch_size", "2"]),
           ("full", 1, ["--activation_checkpoint.mode", "full"])]


class PreferenceDataTest(Case):
    """Preference pairs: the data set `messages` makes two neighbouring documents of a line."""

    LINE = {"prompt": "Question: What is water?\nAnswer:", "chosen": " It is wet.", "rejected": " A dry stone, as everybody knows."}

    def ids_of(self, tokenizer, answer):
        """Ids of the prompt and of both answers, tokenized by transformers."""
        prompt, both = (tokenizer.encode(text, add_special_tokens=False) for text in (self.LINE["prompt"], self.LINE["prompt"] + answer))
        self.assertEqual(both[:len(prompt)], prompt)
        start = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
        return start + prompt, start + both + [tokenizer.eos_token_id]

    def likelihood(self, model, tokenizer, answer):
        prompt, both = self.ids_of(tokenizer, answer)
        with torch.no_grad():
            scores = torch.log_softmax(model(torch.tensor([both[:-1]]), use_cache=False).logits[0].double(), -1)
        return sum(scores[place - 1, both[place]].item() for place in range(len(prompt), len(both)))

    def test_the_first_step_has_the_loss_of_the_pair(self):
        tokenizer = transformers.AutoTokenizer.from_pretrained(ROOT / "tests/assets/tokenizer")
        student, teacher = self.folder / "student", self.folder / "teacher"
        make_model(student, 5, vocab=len(tokenizer))
        make_model(teacher, 6, vocab=len(tokenizer))
        tokenizer.save_pretrained(student)
        (self.folder / "pairs.jsonl").write_text(json.dumps(self.LINE) + "\n")
        margin = 0.0
        for folder, sign in ((student, 1), (teacher, -1)):
            model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
            margin += sign * (self.likelihood(model, tokenizer, self.LINE["chosen"]) -
                              self.likelihood(model, tokenizer, self.LINE["rejected"]))
        run = titan("train", "--job.config_file", "train_configs/debug_model.toml", "--job.dump_folder", self.folder / "run", *MODEL,
                    "--model.vocab_size", str(len(tokenizer)), *STEP, "--training.steps", "1", "--model.hf_assets_path", student,
                    "--training.dataset", "messages", "--training.dataset_path", self.folder / "pairs.jsonl", "--data.packing", "best_fit",
                    "--data.isolate_documents", "--training.seq_len", "128", "--loss.name", "dpo", "--loss.beta", "0.3",
                    "--reference.checkpoint", teacher)
        self.assertEqual(run.returncode, 0, run.stderr)
        found = curves(self.folder / "run", REWARDS)[0]
        self.assertAlmostEqual(found["rewards/margins"], 0.3 * margin, delta=1e-4 * max(1, abs(margin)))
        self.assertAlmostEqual(found["loss"], -torch.nn.functional.logsigmoid(torch.tensor(0.3 * margin, dtype=torch.double)).item(),
                               delta=1e-4)
        self.assertGreater(abs(margin), 0.05)


class CurveTest(Case):
    def run_it(self, *arguments, ranks=1, name="run", names=REWARDS):
        run = train(self.folder / name, *arguments, ranks=ranks)
        self.assertEqual(run.returncode, 0, run.stderr)
        return curves(self.folder / name, names)

    def assert_curves(self, found, exact, tolerance):
        self.assertEqual(len(found), len(exact))
        for step, (values, wanted) in enumerate(zip(found, exact), 1):
            for name, value in wanted.items():
                self.assertLess(abs(values[name] - value), tolerance * max(1, abs(value)),
                                f"step {step}: {name} {values[name]} for {value}")

    def check(self, loss, reference, arguments, names, layouts=LAYOUTS):
        exact = expected(reference, **loss)
        words = options_of(loss) + arguments
        alone = self.run_it(*words, names=names)
        self.assert_curves(alone, exact, 1e-5)
        for name, ranks, layout in layouts:
            with self.subTest(name):
                self.assert_curves(self.run_it(*words, *layout, ranks=ranks, name=name, names=names), exact, 1e-5)
        wide = ["--training.dtype", "float64"]
        exact = self.run_it(*words, *wide, name="wide", names=names)
        for name, ranks, layout in layouts:
            with self.subTest(name + " wide"):
                self.assert_curves(self.run_it(*words, *wide, *layout, ranks=ranks, name=name + "_wide", names=names), exact, 1e-10)

    def test_dpo_equals_torch(self):
        self.check(DPO, "teacher", ["--reference.checkpoint", file("teacher")], REWARDS, LAYOUTS[3:4])
        self.assertGreater(abs(expected("teacher", **DPO)[0]["rewards/margins"]), 1e-2)

    @thorough
    def test_dpo_equals_torch_under_the_other_layouts(self):
        self.check(DPO, "teacher", ["--reference.checkpoint", file("teacher")], REWARDS, LAYOUTS[:3] + LAYOUTS[4:])

    @thorough
    def test_distillation_equals_torch_under_every_layout(self):
        self.check(DISTILLATION, "teacher", ["--reference.checkpoint", file("teacher")], ["nll", "kl"])
        reverse = DISTILLATION | {"divergence": "reverse"}
        found = self.run_it(*options_of(reverse), "--reference.checkpoint", file("teacher"), name="reverse", names=["nll", "kl"])
        self.assert_curves(found, expected("teacher", **reverse), 1e-5)

    def test_the_reference_is_what_the_run_starts_from(self):
        """Also when the run resumes from its own checkpoint."""
        exact = expected("student", **DPO)
        self.assertEqual([exact[0]["rewards/margins"], exact[0]["rewards/accuracies"]], [0, 0])
        saves = ["--checkpoint.interval", "2", "--checkpoint.no_last_save_model_only"]
        first = self.run_it(*options_of(DPO), *saves, "--training.steps", "2")
        self.assert_curves(first, exact[:2], 1e-5)
        self.assertEqual(first[0]["rewards/margins"], 0)
        self.assert_curves(self.run_it(*options_of(DPO), *saves)[2:], exact[2:], 1e-5)

    @thorough
    def test_the_teacher_may_be_of_another_size(self):
        exact = expected("deeper", **DISTILLATION)
        words = options_of(DISTILLATION) + ["--reference.checkpoint", file("deeper")]
        self.assert_curves(self.run_it(*words, names=["nll", "kl"]), exact, 1e-5)
        for name, ranks, layout in LAYOUTS[:3]:
            with self.subTest(name):
                self.assert_curves(self.run_it(*words, *layout, ranks=ranks, name=name, names=["nll", "kl"]), exact, 1e-5)

    def test_adapters_begin_where_the_reference_is(self):
        found = self.run_it(*options_of(DPO), "--model.converters", "lora", "--optimizer.lr", "1e-2")
        self.assertEqual([found[0]["rewards/chosen"], found[0]["rewards/rejected"]], [0, 0])
        self.assertGreater(abs(found[2]["rewards/margins"]), 1e-4)

    def test_validation_reports_the_loss_and_no_perplexity(self):
        validation = ["--validation.enable", "--validation.dataset", "tokens", "--validation.dataset_path", file("ids.bin"),
                      "--validation.freq", "3", "--validation.seq_len", str(SEQ_LEN), "--validation.local_batch_size", str(ROWS)]
        words = [*options_of(DPO), "--reference.checkpoint", file("teacher"), "--training.steps", "1", "--optimizer.lr", "1e-30",
                 *validation]
        self.run_it(*words, "--validation.steps", "1")
        line = next(line for line in metrics(self.folder / "run") if "validation_metrics/loss" in line)
        self.assertNotIn("validation_metrics/perplexity", line)
        first = expected("teacher", **DPO)[0]
        self.assertLess(abs(line["validation_metrics/loss"] - first["loss"]), 1e-5)
        for name in REWARDS:
            self.assertLess(abs(line[f"validation_metrics/{name}"] - first[name]), 1e-5 * max(1, abs(first[name])), name)
        # the mean over the pairs of all batches and ranks
        self.run_it(*words, "--validation.steps", "-1", name="all")
        line = next(line for line in metrics(self.folder / "all") if "validation_metrics/loss" in line)
        self.run_it(*words, "--validation.steps", "-1", "--parallelism.data_parallel_replicate_degree", "2",
                    "--validation.local_batch_size", str(ROWS // 2), ranks=2, name="ranks")
        other = next(line for line in metrics(self.folder / "ranks") if "validation_metrics/loss" in line)
        for name in ["loss", *REWARDS]:
            value = line[f"validation_metrics/{name}"]
            self.assertLess(abs(other[f"validation_metrics/{name}"] - value), 1e-5 * max(1, abs(value)), name)


class MistakesTest(Case):
    def test_what_is_wrong_is_found_before_the_start(self):
        teacher = ["--reference.checkpoint", file("teacher")]
        for arguments, texts in (
                ([*options_of(DPO), "--checkpoint.no_initial_load_in_hf"],
                 ["loss 'dpo' (loss.name) compares", "set reference.checkpoint", "checkpoint.initial_load_path"]),
                (teacher, ["reference.checkpoint has no effect without loss.name"]),
                (["--loss.name", "cross_entropy", *teacher], ["reference.checkpoint", "loss 'cross_entropy'", "leave it out"]),
                ([*options_of(DPO), "--loss.reference_free", *teacher], ["reference.checkpoint", "in this configuration", "leave it out"]),
                ([*options_of(DPO), "--reference.checkpoint", "/nowhere"], ["reference.checkpoint: there is no folder '/nowhere'"]),
                ([*options_of(DPO), "--reference.checkpoint", file("other_words")],
                 ["reference.checkpoint", "has a vocabulary of 256 tokens, the run's has 512"]),
                ([*options_of(DPO), "--data.no_isolate_documents"], ["data.isolate_documents = false", "loss.name = 'dpo'"]),
                ([*options_of(DPO), "--loss.variant", "hinge"], ["'label_smoothing' = 0.1", "sigmoid"])):
            with self.subTest(" ".join(texts)):
                run = train(self.out, *arguments)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assert_holds(run.stderr, *texts)
        for loss in (DPO, DISTILLATION):
            run = train(self.out, *options_of(loss), "--dry-run", "--world-size", "2", "--parallelism.context_parallel_degree", "2")
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, "parallelism.context_parallel_degree = 2 cuts sequences", f"loss.name = '{loss['loss']}'")
        self.assert_nothing_was_written()

    def test_answers_without_a_partner_are_no_data(self):
        run = train(self.out, *options_of(DPO), "--dataset.tokens.chunk_tokens", "20")  # three per sequence
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assert_holds(run.stderr, "holds a chosen answer as document 2", "in training step 1")

    def test_without_a_reference_none_is_loaded(self):
        run = train(self.out, *options_of(DPO), "--loss.reference_free")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("the reference model", run.stderr)
        self.assertLess(curves(self.out, REWARDS)[0]["rewards/chosen"], -10)

    def test_played_ranks_hold_both_models(self):
        def most(*arguments):
            run = train(self.out, "--comm.mode", "fake_backend", "--world-size", "4", "--parallelism.tensor_parallel_degree", "2",
                        *arguments)
            self.assertEqual(run.returncode, 0, run.stderr)
            line = next(line for line in run.stdout.splitlines() if "most at once" in line)
            return int(line.split()[-2])

        weights = 4 * 164160 // 2
        for loss in (DPO, DISTILLATION):
            alone = most() if loss is DISTILLATION else most(*options_of(DPO), "--loss.reference_free")
            self.assertGreater(most(*options_of(loss)), alone + weights // 2)
        run = train(self.out, "--dry-run", *options_of(DPO))
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    assert os.access(TITAN, os.X_OK), TITAN
    main()
