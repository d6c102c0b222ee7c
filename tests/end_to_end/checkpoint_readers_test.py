"""Checkpoints in other software: torch.distributed.checkpoint loads and merges them, safetensors reads them, transformers
loads the export and continues training as Titan does; and a model saved by transformers starts a run of Titan."""

import functools
import json
import pathlib
import shutil
import subprocess
import tempfile

import before_transformers

import numpy
import tokenizers
import torch
import transformers
import xxhash
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from transformers import LlamaConfig, LlamaForCausalLM

from checkpoint_case import SMALL, CheckpointCase, damage, pieces, whole_state
from harness import HANG, ROOT, TITAN, losses, main, metrics, titan
from ranks_test import bare_environment, fingerprints

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

LOSS, LOGITS = 1e-4, 1e-4
TRAINED_LOSS = 1e-5  # after one and two updates
ROWS, SEQ_LEN, STEPS = 4, 64, 3
LAYOUTS = {"one rank": (1, []),
           "fsdp 2 x tp 2": (4, ["--parallelism.data_parallel_shard_degree", "2", "--parallelism.tensor_parallel_degree", "2"])}
# So small that no update changes a weight: the weights of all layouts are bitwise the initial ones.
STILL = ["--optimizer.lr", "1e-30"]


@functools.cache
def checkpoints():
    """{layout: folder of a checkpoint of step 3, whose weights are the initial ones}; they live as long as the program."""
    keeper = tempfile.TemporaryDirectory(prefix="titan_")
    folders = {"keeper": keeper}
    for name, (ranks, layout) in LAYOUTS.items():
        out = pathlib.Path(keeper.name) / name.replace(" ", "_")
        launch = ["launch", "--nproc", str(ranks), "--log-dir", str(out / "logs"), "--"] if ranks > 1 else []
        run = subprocess.run([TITAN, *launch, "train", *SMALL, *STILL, *layout, "--checkpoint.interval", str(STEPS),
                              "--job.dump_folder", str(out)], cwd=ROOT, env=bare_environment(), stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=HANG)
        assert run.returncode == 0, run.stderr
        folders[name] = out / "checkpoint" / f"step-{STEPS}"
    return folders


@functools.cache
def batches():
    """Tokens and labels of each step, made by the tokenizers package and the documented rules of the data set: row r of the
    batch reads documents r, r + rows, ...; begin and end marks; windows of seq_len + 1 that share no token."""
    tokenizer = tokenizers.Tokenizer.from_file(str(ROOT / "tests/assets/tokenizer/tokenizer.json"))
    settings = json.loads((ROOT / "tests/assets/tokenizer/tokenizer_config.json").read_text())
    bos, eos = (tokenizer.token_to_id(settings[name]) for name in ("bos_token", "eos_token"))
    texts = [json.loads(line)["text"] for line in (ROOT / "tests/assets/corpus/train.jsonl").read_text().splitlines()]
    window, rows = SEQ_LEN + 1, []
    for row in range(ROWS):
        ids, documents = [], iter(texts[row::ROWS])
        while len(ids) < STEPS * window:
            ids += [bos, *tokenizer.encode(next(documents), add_special_tokens=False).ids, eos]
        rows.append(torch.tensor(ids[:STEPS * window]).view(STEPS, window))
    steps = torch.stack(rows, dim=1)
    return [(step[:, :-1].contiguous(), step[:, 1:].contiguous()) for step in steps]


def digest(tokens, labels):
    """As debug.fingerprints writes it."""
    total = sum(xxhash.xxh3_64_intdigest(tensor[row].numpy().tobytes(), seed=row) for row in range(ROWS)
                for tensor in (tokens, labels))
    return f"{total % 2**64:016x}"


def loss_of(model, tokens, labels):
    logits = model(tokens, use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def load_by_transformers(case, folder):
    """The model; fails if a weight is missing, unexpected or of another shape."""
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", local_files_only=True, output_loading_info=True)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        case.assertEqual(list(info[kind]), [], kind)
    return model


class ReadersCase(CheckpointCase):
    def assert_same(self, found, expected):
        self.assertEqual(sorted(found), sorted(expected))
        for name, tensor in expected.items():
            self.assertEqual(found[name].dtype, tensor.dtype, name)
            self.assertEqual(found[name].shape, tensor.shape, name)
            self.assertTrue(torch.equal(found[name], tensor), name)

    def assert_same_tokens(self, folder):
        """The batches of this file are those of the run."""
        lines = [json.loads(line) for line in fingerprints(folder).splitlines()]
        read = {line["step"]: line["tokens"] for line in lines if "tokens" in line}
        self.assertEqual(read, {step: digest(*batches()[step - 1]) for step in read})

    def assert_near(self, found, expected, limit, what):
        self.assertLessEqual(abs(found - expected), limit, f"{what}: {found} and {expected}")


class TorchTest(ReadersCase):
    """torch.distributed.checkpoint, and safetensors without it."""

    def each(self):
        for name in LAYOUTS:
            with self.subTest(name):
                yield checkpoints()[name]

    def test_safetensors_reads_every_file(self):
        for folder in self.each():
            self.assertEqual(damage(folder), [])  # opens, reads and hashes all files
            for path in sorted(folder.glob("*.safetensors")):
                whole = load_file(path)
                with safe_open(path, "pt") as file:
                    self.assertEqual(file.metadata()["format"], "pt")
                    self.assertEqual(sorted(file.keys()), sorted(whole))
                    for name in file.keys():
                        self.assertTrue(torch.equal(file.get_slice(name)[:], whole[name]), name)
                self.assertTrue(all(tensor.isfinite().all() for tensor in whole.values()))

    def test_its_reader_loads_every_tensor_bit_for_bit(self):
        for folder in self.each():
            expected = whole_state(folder)
            self.assertTrue(any(name.startswith("optim.exp_avg_sq.") for name in expected))
            stored = HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata
            self.assertEqual({name: (item.size, item.properties.dtype) for name, item in stored.items()},
                             {name: (tensor.shape, tensor.dtype) for name, tensor in expected.items()})
            found = {name: torch.full(item.size, torch.nan, dtype=item.properties.dtype) for name, item in stored.items()}
            dcp.load(found, storage_reader=HuggingFaceStorageReader(str(folder), thread_count=2), no_dist=True)
            self.assert_same(found, expected)

    def test_what_it_loads_is_the_same_from_either_layout(self):
        one, four = (whole_state(checkpoints()[name]) for name in LAYOUTS)
        self.assertEqual(sorted(one), sorted(four))
        self.assertGreater(len(pieces(checkpoints()["fsdp 2 x tp 2"])), 2 * len(four))  # they were sharded
        initial = [json.loads(line) for line in fingerprints(checkpoints()["one rank"].parents[1]).splitlines()]
        initial = {line["parameter"]: line["xxh3"] for line in initial if "parameter" in line}
        self.assertEqual(sorted(initial), sorted(name for name in one if not name.startswith("optim.")))
        for name, tensor in one.items():
            if name in initial:
                self.assertEqual(xxhash.xxh3_64_hexdigest(tensor.numpy().tobytes()), initial[name], name)
                self.assertTrue(torch.equal(tensor, four[name]), name)
            elif name.startswith("optim.step."):
                self.assertEqual((tensor.tolist(), four[name].tolist()), ([STEPS], [STEPS]), name)
            else:  # gradients are summed in another order
                error = (tensor - four[name]).norm() / tensor.norm()
                self.assertLess(error, 1e-5, name)

    def test_its_consolidation_merges_them(self):
        for folder in self.each():
            expected = whole_state(folder)
            self.out = self.folder / folder.parents[1].name
            self.out.mkdir()
            is_state = lambda name: name.startswith("optim.")
            consolidate_safetensors_files(str(folder), str(self.out), {name: 1 + is_state(name) for name in expected}, 2)
            weights, states = (load_file(self.out / f"model-0000{i}-of-00002.safetensors") for i in (1, 2))
            self.assertEqual([is_state(name) for name in weights], [False] * len(weights))
            self.assertEqual(len([name for name in states if name.startswith("optim.step.")]), len(weights))
            self.assert_same(weights | states, expected)


class ExportTest(ReadersCase):
    """transformers reads Titan's exports."""

    def export(self, layout):
        folder = self.folder / "export"
        shutil.rmtree(folder, ignore_errors=True)
        run = titan("convert", "to-hf", checkpoints()[layout], folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        return folder

    def first_loss_from(self, checkpoint):
        """The first loss of a run that starts with these weights."""
        self.out = self.folder / f"from_{checkpoint.parents[1].name}"
        self.run_ranks(1, "--training.steps", 1, "--checkpoint.initial_load_path", checkpoint)
        self.assert_same_tokens(self.out)
        return losses(self.out)[0]

    def test_it_loads_the_export_and_gives_our_loss(self):
        for layout in LAYOUTS:
            with self.subTest(layout):
                model = load_by_transformers(self, self.export(layout)).eval()
                with torch.no_grad():
                    theirs = loss_of(model, *batches()[0]).item()
                self.assert_near(self.first_loss_from(checkpoints()[layout]), theirs, LOSS, layout)

    def test_it_gives_our_logits(self):
        probe = pathlib.Path(TITAN).parent / "llama_probe"
        state = {name: tensor for name, tensor in whole_state(checkpoints()["fsdp 2 x tp 2"]).items()
                 if not name.startswith("optim.")}
        manifest = json.loads((checkpoints()["fsdp 2 x tp 2"] / "manifest.json").read_text())
        tokens, labels = batches()[0]
        job = {"model": manifest["model"], "flavor": manifest["flavor"], "seq_len": SEQ_LEN, "seed": 1, "rows": ROWS, "batches": 1,
               "options": {name: manifest["config"]["model"][name]
                           for name in ("dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size")}}
        for name, tensor in {"tokens": tokens, "labels": labels}.items():
            job[name] = str(self.write(name, tensor.numpy().astype("<i8").tobytes()))
        for name, tensor in state.items():
            self.write(f"weights/{name}.bin", tensor.numpy().astype("<f4").tobytes())
        job["weights"] = str(self.folder / "weights")
        plugins = pathlib.Path(TITAN).parents[1] / "lib/titan/plugins"
        run = subprocess.run([probe, "--plugins", plugins, "--job", self.write("job.json", json.dumps(job)), "--out",
                              self.folder], capture_output=True, text=True, timeout=HANG)
        self.assertEqual(run.returncode, 0, run.stderr)
        ours = torch.from_numpy(numpy.fromfile(self.folder / "logits.bin", "<f4")).view(ROWS, SEQ_LEN, -1)
        with torch.no_grad():
            theirs = load_by_transformers(self, self.export("fsdp 2 x tp 2")).eval()(tokens, use_cache=False).logits
        self.assertGreater(theirs.abs().max().item(), 0.5)
        self.assertLess((ours - theirs).abs().max().item(), LOGITS)

    def test_a_run_ends_with_a_folder_that_it_loads(self):
        """checkpoint.last_save_in_hf, under a layout that shards every weight."""
        for dtype in ("float32", "bfloat16"):
            with self.subTest(dtype):
                self.out = self.folder / dtype
                ranks, layout = LAYOUTS["fsdp 2 x tp 2"]
                self.run_ranks(ranks, *STILL, *layout, "--checkpoint.last_save_model_only", "--checkpoint.last_save_in_hf",
                               "--checkpoint.export_dtype", dtype)
                folder = self.out / "checkpoint" / f"step-{STEPS}"
                self.assertTrue((folder / "config.json").exists() and (folder / "model.safetensors").exists(),
                                sorted(path.name for path in folder.iterdir()))
                self.assertEqual({tensor.dtype for tensor in load_file(folder / "model.safetensors").values()},
                                 {getattr(torch, dtype)})
                found = load_by_transformers(self, folder).state_dict()
                expected = load_by_transformers(self, self.export("one rank")).state_dict()
                self.assert_same(found, {name: tensor.to(getattr(torch, dtype)).float() for name, tensor in expected.items()})


class ImportTest(ReadersCase):
    """Titan starts with a model that transformers saved, and both continue training equally."""

    RATE, WARMUP = 1e-3, 2
    SIZES = ["--model.multiple_of", 64, "--model.rope_scaling.scaling_factor", 1]

    def save_model(self, tied):
        torch.manual_seed(11)
        model = LlamaForCausalLM(LlamaConfig(
            hidden_size=64, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            vocab_size=2048, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
            tie_word_embeddings=tied, max_position_embeddings=2048, initializer_range=0.08, attn_implementation="eager",
            bos_token_id=2046, eos_token_id=2047))
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if "norm" in name:
                    weight.uniform_(0.5, 1.5)
        model.save_pretrained(self.folder / "theirs")
        return load_by_transformers(self, self.folder / "theirs").train()

    def train_by_torch(self, model):
        """The losses of three steps: torch's AdamW and clipping, a linear warmup."""
        optimizer = torch.optim.AdamW(model.parameters(), lr=self.RATE, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
        warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: min(1, (done + 1) / self.WARMUP))
        found, norms = [], []
        for tokens, labels in batches():
            loss = loss_of(model, tokens, labels)
            loss.backward()
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
            optimizer.step()
            warmup.step()
            optimizer.zero_grad()
            found.append(loss.item())
        return found, norms

    def compare(self, tied, ranks=1, layout=()):
        model = self.save_model(tied)
        start = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        self.run_ranks(ranks, *layout, *self.SIZES, *(["--model.enable_weight_tying"] if tied else []), "--optimizer.lr",
                       self.RATE, "--lr_scheduler.warmup_steps", self.WARMUP, "--checkpoint.initial_load_in_hf",
                       "--checkpoint.initial_load_path", self.folder / "theirs")
        self.assert_same_tokens(self.out)
        theirs, norms = self.train_by_torch(model)
        lines = metrics(self.out)
        self.assertEqual(len(lines), STEPS)
        self.assertGreater(abs(theirs[2] - theirs[1]), 100 * TRAINED_LOSS)  # large enough that a difference would show
        for step, line in enumerate(lines):
            limit = LOSS if step == 0 else TRAINED_LOSS
            self.assert_near(line["loss_metrics/global_avg_loss"], theirs[step], limit, f"loss of step {step + 1}")
            self.assert_near(line["grad_norm"] / norms[step], 1, 5e-5, f"gradient norm of step {step + 1}")
        self.compare_weights(model, start, tied)

    def compare_weights(self, model, start, tied):
        """The changes of three updates agree with torch's."""
        folder = self.folder / "trained"
        run = titan("convert", "to-hf", self.saved / f"step-{STEPS}", folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        ours = load_by_transformers(self, folder)
        self.assertEqual(ours.config.tie_word_embeddings, tied)
        found = dict(ours.named_parameters())
        for name, weight in model.named_parameters():
            moved = (weight - start[name]).norm()
            self.assertLess(((found[name] - weight).norm() / moved).item(), 1e-3, name)

    def test_grouped_query_attention(self):
        self.compare(tied=False)

    def test_tied_weights(self):
        self.compare(tied=True)

    def test_four_ranks(self):
        self.compare(False, *LAYOUTS["fsdp 2 x tp 2"])

    def test_a_weight_that_is_missing_is_named(self):
        self.save_model(tied=False)
        path = self.folder / "theirs" / "model.safetensors"
        weights = load_file(path)
        weights.pop("model.layers.1.mlp.up_proj.weight")
        save_file(weights, path, metadata={"format": "pt"})
        run = self.run_ranks(1, *self.SIZES, "--checkpoint.initial_load_in_hf", "--checkpoint.initial_load_path",
                             self.folder / "theirs", code=1)
        self.assert_holds(run.stderr, "model.layers.1.mlp.up_proj.weight", "missing", str(self.folder / "theirs"))


if __name__ == "__main__":
    main()
