"""Held-out loss and attention within documents, compared with transformers: the weights of a run are exported, the sequences are made
again by the tokenizers package and the rules in docs/guides/data.md, and transformers' model computes the loss."""

import functools
import json
import math
import sys

import before_transformers

import numpy
import tokenizers
import torch
import transformers

from checkpoint_case import SMALL, CheckpointCase
from harness import ROOT, losses, main, metrics, thorough

sys.path.insert(0, str(ROOT / "tests/referee"))
from megatron_writer import write_megatron

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

CORPUS = ROOT / "tests/assets/corpus"
SEQ_LEN, ROWS, NEAR = 64, 4, 2e-5
# So small that no update changes a weight; the export holds the weights of every step.
STILL = ["--optimizer.lr", "1e-30", "--checkpoint.last_save_model_only", "--checkpoint.last_save_in_hf", "--training.steps", "1"]
VALIDATION = ["--validation.enable", "--validation.dataset", "jsonl", "--validation.seq_len", "64", "--validation.freq", "2"]


@functools.cache
def tokenizer():
    return tokenizers.Tokenizer.from_file(str(ROOT / "tests/assets/tokenizer/tokenizer.json"))


def frame(text):
    settings = json.loads((ROOT / "tests/assets/tokenizer/tokenizer_config.json").read_text())
    bos, eos = (tokenizer().token_to_id(settings[name]) for name in ("bos_token", "eos_token"))
    return [bos, *tokenizer().encode(text, add_special_tokens=False).ids, eos]


def texts_of(path):
    return [json.loads(line)["text"] for line in path.read_text().splitlines()]


def rows_of(texts, rows):
    """The stream of each row: [(ids, bytes)] of its documents."""
    return [[(frame(text), len(text.encode())) for text in texts[row::rows]] for row in range(rows)]


class ValidationCase(CheckpointCase):
    def model(self):
        folder = self.saved / "step-1"
        return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                                 local_files_only=True).eval()

    def validation(self, folder=None):
        """The validation metrics of each step that has any."""
        return {line["step"]: {name.split("/", 1)[1]: value for name, value in line.items()
                               if name.startswith("validation_metrics/")}
                for line in metrics(folder or self.out) if "validation_metrics/loss" in line}

    def held_out(self, count):
        path = self.folder / "held_out.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts_of(CORPUS / "validation.jsonl")[:count]))
        return ["--validation.dataset_path", path]


class LossTest(ValidationCase):
    def theirs(self, texts, rows):
        """Mean loss, bits per byte and tokens of the whole set, by transformers."""
        model, total, count, size = self.model(), 0.0, 0, 0.0
        for stream in rows_of(texts, rows):
            ids = [(token, length / len(document)) for document, length in stream for token in document]
            for begin in range(0, len(ids), SEQ_LEN + 1):
                window = ids[begin:begin + SEQ_LEN + 1]
                if len(window) < 2:
                    continue
                tokens = torch.tensor([[token for token, _ in window]])
                with torch.no_grad():
                    logits = model(tokens[:, :-1], use_cache=False).logits
                total += torch.nn.functional.cross_entropy(logits[0].double(), tokens[0, 1:], reduction="sum").item()
                count += len(window) - 1
                size += sum(share for _, share in window[1:])
        return total / count, total / math.log(2) / size, count

    def test_it_is_the_mean_over_all_tokens_of_the_set_and_agrees_with_transformers(self):
        few = self.held_out(23)
        self.run_ranks(1, *STILL, *VALIDATION, *few, "--validation.local_batch_size", ROWS)
        found = self.validation()[1]
        loss, bits, _ = self.theirs(texts_of(CORPUS / "validation.jsonl")[:23], ROWS)
        self.assertAlmostEqual(found["loss"], loss, delta=NEAR)
        self.assertAlmostEqual(found["perplexity"], math.exp(loss), delta=NEAR * math.exp(loss))
        self.assertAlmostEqual(found["bits_per_byte"], bits, delta=NEAR)

    def test_it_does_not_depend_on_the_layout(self):
        self.check_layouts({"fsdp 2 x tp 2": (4, ROWS // 2, ["--parallelism.tensor_parallel_degree", "2"])})

    @thorough
    def test_it_does_not_depend_on_the_other_layouts(self):
        ddp = ["--parallelism.data_parallel_replicate_degree", "2", "--parallelism.data_parallel_shard_degree", "1"]
        self.check_layouts({"fsdp 2": (2, ROWS // 2, []), "tp 2": (2, ROWS, ["--parallelism.tensor_parallel_degree", "2"]),
                            "ddp 2": (2, ROWS // 2, ddp), "microbatches": (1, ROWS, ["--validation.dataloader.num_workers", "2"])})

    def check_layouts(self, layouts):
        few = self.held_out(23)
        seen = {}
        for name, (ranks, rows, flags) in {"one": (1, ROWS, []), **layouts}.items():
            self.out = self.folder / name.replace(" ", "_")
            self.run_ranks(ranks, "--training.steps", "4", *VALIDATION, *few, "--validation.local_batch_size", rows, *flags)
            seen[name] = self.validation()
            self.assertEqual(sorted(seen[name]), [1, 2, 4], "after step 1 and every freq steps")
        for name, by_step in seen.items():
            for step, values in by_step.items():
                self.assertAlmostEqual(values["loss"], seen["one"][step]["loss"], delta=2e-5, msg=f"{name}, step {step}")
                self.assertAlmostEqual(values["bits_per_byte"], seen["one"][step]["bits_per_byte"], delta=2e-5)
        self.assertLess(seen["one"][4]["loss"], seen["one"][1]["loss"])

    def test_training_does_not_change_by_it(self):
        self.run_ranks(2, "--training.steps", "5")
        without = losses(self.out)
        self.out = self.folder / "with"
        for flags in ([], ["--parallelism.fsdp_reshard_after_forward", "never"]):
            self.run_ranks(2, "--training.steps", "5", *VALIDATION, *self.held_out(8), "--validation.local_batch_size", 2, *flags)
            found = [line["loss_metrics/global_avg_loss"] for line in metrics(self.out) if "loss_metrics/global_avg_loss" in line]
            self.assertEqual(found, without, flags)

    def test_a_number_of_steps_reads_that_much_and_the_same_each_time(self):
        self.run_ranks(1, *STILL[:2], "--training.steps", "4", *VALIDATION, *self.held_out(30), "--validation.steps", "3",
                       "--validation.local_batch_size", "2")
        values = self.validation()
        self.assertEqual({round(value["loss"], 7) for value in values.values()}, {round(values[1]["loss"], 7)})

    def test_a_batch_without_a_target_is_not_the_end_of_the_data(self):
        """Three documents of 65 tokens, then 65 documents of one token, which fill a sequence, then six of 65 tokens;
        each twice, for two rows."""
        random = numpy.random.default_rng(3)
        long = [random.integers(0, 2000, SEQ_LEN + 1).tolist() for _ in range(9)]
        alone = [[int(token)] for token in random.integers(0, 2000, SEQ_LEN + 1)]
        write_megatron(self.folder / "held_out", [[ids] for ids in long[:3] + alone + long[3:] for _ in range(2)], numpy.uint16)
        flags = [*VALIDATION, "--validation.dataset", "megatron", "--validation.dataset_path", self.folder / "held_out",
                 "--data.isolate_documents", "--data.no_labels_cross_documents", "--validation.local_batch_size", "1"]
        found = {}
        for ranks in (1, 2):
            self.out = self.folder / f"ranks_{ranks}"
            self.run_ranks(ranks, *STILL, *flags)
            found[ranks] = self.validation()[1]["loss"]
        with torch.no_grad():
            logits = self.model()(torch.tensor(long)[:, :-1], use_cache=False).logits
        expected = torch.nn.functional.cross_entropy(logits.double().flatten(0, 1), torch.tensor(long)[:, 1:].flatten()).item()
        for ranks, loss in found.items():
            self.assertAlmostEqual(loss, expected, delta=NEAR, msg=f"{ranks} ranks")

    def test_data_that_cannot_be_read_is_found_before_anything_is_written(self):
        run = self.run_ranks(1, *VALIDATION, "--validation.dataset_path", self.folder / "nowhere.jsonl", code=2)
        self.assert_holds(run.stderr, "nowhere.jsonl", "does not exist")
        self.assert_nothing_was_written()


class DocumentsTest(ValidationCase):
    """Positions that restart, attention and labels that stay inside documents."""

    def test_each_document_is_computed_as_if_it_were_alone(self):
        short = self.folder / "short.jsonl"
        short.write_text("".join(json.dumps({"text": " ".join(text.split()[:14])}) + "\n"
                                 for text in texts_of(CORPUS / "train.jsonl")[:400]))
        rows = rows_of(texts_of(short), ROWS)
        pieces = []
        for stream in rows:
            room = SEQ_LEN + 1
            for ids, _ in stream:
                pieces.append(ids[:room])
                room -= len(ids)
                if room <= 0:
                    break
        self.assertGreater(len(pieces), 2 * ROWS, "several documents in a window, or this shows nothing")
        flags = ["--training.dataset_path", short, "--data.isolate_documents", "--data.no_labels_cross_documents"]
        found = {}
        for name, (ranks, more) in {"one": (1, []), "tp 2": (2, ["--parallelism.tensor_parallel_degree", "2"]),
                                    "fsdp 2": (2, []),
                                    "flavor": (1, ["--model.flavor", "debugmodel_flex_attn", "--data.no_isolate_documents"])}.items():
            self.out = self.folder / name.replace(" ", "_")
            self.run_ranks(ranks, *STILL, *flags, *more)
            found[name] = losses(self.out)[0]
        self.out = self.folder / "one"
        model, total, count = self.model(), 0.0, 0
        for ids in pieces:
            if len(ids) < 2:
                continue
            tokens = torch.tensor([ids])
            with torch.no_grad():
                logits = model(tokens[:, :-1], use_cache=False).logits
            total += torch.nn.functional.cross_entropy(logits[0].double(), tokens[0, 1:], reduction="sum").item()
            count += len(ids) - 1
        for name, loss in found.items():
            self.assertAlmostEqual(loss, total / count, delta=NEAR, msg=name)

        self.out = self.folder / "crossing"
        self.run_ranks(1, *STILL, "--training.dataset_path", short)
        self.assertGreater(abs(losses(self.out)[0] - total / count), 10 * NEAR, "the default does see other documents")


if __name__ == "__main__":
    main()
