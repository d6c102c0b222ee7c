"""experiments/differential, built against an installation: differential attention judged by an independent implementation in torch (loss,
logits and all gradients in float64) and by transformers' DiffLlama; every layout compared with one rank; generation with a cache."""

import functools
import json
import math
import os
import pathlib
import sys
import tempfile

import before_transformers

import numpy
import torch
import transformers
from torch.nn.functional import cross_entropy, silu

from harness import ROOT, Case, main, metrics
from installed import build_project, run_checked, titan_installed, train_installed

RECIPE = ["--job.config_file", "experiments/differential/train.toml"]
SHORT = ["--model.dim", "64", "--model.n_layers", "2", "--model.n_heads", "8", "--training.dtype", "float64", "--training.steps", "5",
         "--training.seq_len", "64", "--training.local_batch_size", "2", "--training.global_batch_size", "4", "--debug.deterministic",
         "--debug.fingerprints"]
P = "--parallelism."
LAYERS, HEADS, DIM, HIDDEN, VOCAB, ROWS, LENGTH, EPS = 2, 8, 64, 256, 96, 2, 48, 1e-5
SIZES = {"dim": DIM, "n_layers": LAYERS, "n_heads": HEADS, "multiple_of": 256, "vocab_size": VOCAB}
PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "differential"
    PLUGINS = build_project(ROOT / "experiments/differential", build) / "lib/titan/plugins"


def train(out, ranks, *arguments):
    return train_installed(ranks, *RECIPE, "--plugins.paths", PLUGINS, "--job.dump_folder", out, *arguments)


def curves(out, ranks, *arguments):
    run = train(out, ranks, *SHORT, *arguments)
    assert run.returncode == 0, run.stderr
    numbers = ("loss_metrics/global_avg_loss", "grad_norm")
    return [[line[number] for line in metrics(out)] for number in numbers], (out / "fingerprints.jsonl").read_text()


@functools.cache
def of_one_rank(*arguments):
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        return curves(pathlib.Path(folder), 1, *arguments)


class LayoutTest(Case):
    def test_the_page_shows_what_was_measured(self):
        run_checked(sys.executable, ROOT / "experiments/differential/run.py", "--check")

    def test_every_layout_equals_one_rank(self):
        whole = [P + "data_parallel_shard_degree", "1"]
        fsdp, tp, pp = [P + "data_parallel_shard_degree", "2"], [P + "tensor_parallel_degree", "2"], [P + "pipeline_parallel_degree", "2"]
        documents, two_groups = ["--data.isolate_documents"], ["--model.n_kv_heads", "4"]
        for number, (ranks, arguments, model) in enumerate((
                (2, fsdp, []), (2, [*whole, *tp], []), (2, [*whole, *pp], []),
                (2, [*whole, P + "context_parallel_degree", "2"], []),
                (2, [*whole, P + "context_parallel_degree", "2", P + "context_parallel_rotate_method", "alltoall"], documents),
                (4, [*fsdp, *tp, P + "tensor.no_sequence_parallel", "--activation_checkpoint.mode", "full"], two_groups),
                (4, [*whole, *tp, *pp], two_groups))):
            with self.subTest(arguments=arguments, model=model):
                expected, prints = of_one_rank(*model)
                self.assertEqual(len(expected[0]), 5)
                found, found_prints = curves(self.folder / f"run_{number}", ranks, *model, *arguments)
                self.assertEqual(found_prints, prints, "initial weights or tokens")
                numpy.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_heads_that_have_no_partner_are_refused(self):
        run = train(self.out, 1, "--dry-run", "--model.n_heads", "4", "--model.n_kv_heads", "1")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, "model.n_heads and model.n_kv_heads must be even, got 4 and 1")


def norm(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * weight


def rotate(x):
    """x (B, heads, S, hd): element j of a head turns with element j + hd / 2."""
    half = x.shape[-1] // 2
    # as in transformers, the table is made in float32
    angles = torch.arange(x.shape[2]).float().outer(1 / 10000.0 ** (torch.arange(half).float() / half))
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attention(x, w, name, layer, kv_heads):
    """Equations 1 to 3 of the paper, head by head."""
    hd = DIM // HEADS
    q, k = ((x @ w[f"{name}.{one}.weight"].T).unflatten(-1, (-1, hd)).transpose(1, 2) for one in ("wq", "wk"))
    v = (x @ w[f"{name}.wv.weight"].T).unflatten(-1, (-1, 2 * hd)).transpose(1, 2)
    q, k = rotate(q), rotate(k)
    start = 0.8 - 0.6 * math.exp(-0.3 * layer)
    factor = ((w[f"{name}.lambda_q1"] @ w[f"{name}.lambda_k1"]).exp() - (w[f"{name}.lambda_q2"] @ w[f"{name}.lambda_k2"]).exp() + start)
    hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)

    def softmax(head):
        group = head // (HEADS // kv_heads)
        scores = q[:, head] @ k[:, group].mT / math.sqrt(hd)
        return scores.masked_fill(hidden, -math.inf).softmax(-1)

    outs = [norm((softmax(2 * i) - factor * softmax(2 * i + 1)) @ v[:, i // (HEADS // kv_heads)], w[f"{name}.norm.weight"]) * (1 - start)
            for i in range(HEADS // 2)]
    return torch.cat(outs, -1) @ w[f"{name}.wo.weight"].T


def referee_logits(tokens, w, kv_heads):
    x = w["tok_embeddings.weight"][tokens]
    for layer in range(LAYERS):
        name = f"layers.{layer}"
        x = x + attention(norm(x, w[f"{name}.attention_norm.weight"]), w, f"{name}.attention", layer, kv_heads)
        h = norm(x, w[f"{name}.ffn_norm.weight"])
        w1, w2, w3 = (w[f"{name}.feed_forward.w{i}.weight"] for i in (1, 2, 3))
        x = x + (silu(h @ w1.T) * (h @ w3.T)) @ w2.T
    return norm(x, w["norm.weight"]) @ w["output.weight"].T


class ProbedCase(Case):
    def probe(self, name, dtype, weights, tokens, labels, **options):
        out = self.folder / name
        (out / "weights").mkdir(parents=True)
        for key, value in weights.items():
            value.detach().float().numpy().tofile(out / "weights" / f"{key}.bin")
        tokens.numpy().tofile(out / "tokens.bin")
        labels.numpy().tofile(out / "labels.bin")
        job = {"model": "maintainers/differential", "seq_len": LENGTH, "options": SIZES | options, "seed": 1, "dtype": dtype, "rows": ROWS,
               "batches": 1, "tokens": str(out / "tokens.bin"), "labels": str(out / "labels.bin"), "weights": str(out / "weights")}
        (out / "job.json").write_text(json.dumps(job))
        run_checked(os.environ["TITAN_MODEL_PROBE"], "--plugins", PLUGINS, "--job", out / "job.json", "--out", out)
        return json.loads((out / "result.json").read_text()), out

    def tokens(self):
        generator = torch.Generator().manual_seed(3)
        return torch.randint(VOCAB, (ROWS, LENGTH), generator=generator), torch.randint(VOCAB, (ROWS, LENGTH), generator=generator)

    def weights(self, kv_heads=HEADS):
        """Random float32 values; lambdas are wide enough to matter."""
        generator = torch.Generator().manual_seed(7)
        hd, shapes = DIM // HEADS, {"tok_embeddings.weight": (VOCAB, DIM), "norm.weight": (DIM,), "output.weight": (VOCAB, DIM)}
        for layer in range(LAYERS):
            name = f"layers.{layer}"
            shapes |= {f"{name}.attention.{key}": shape for key, shape in (
                ("wq.weight", (DIM, DIM)), ("wk.weight", (kv_heads * hd, DIM)), ("wv.weight", (kv_heads * hd, DIM)), ("wo.weight", (DIM, DIM)),
                ("lambda_q1", (hd,)), ("lambda_k1", (hd,)), ("lambda_q2", (hd,)), ("lambda_k2", (hd,)), ("norm.weight", (2 * hd,)))}
            shapes |= {f"{name}.feed_forward.w1.weight": (HIDDEN, DIM), f"{name}.feed_forward.w2.weight": (DIM, HIDDEN),
                       f"{name}.feed_forward.w3.weight": (HIDDEN, DIM), f"{name}.attention_norm.weight": (DIM,), f"{name}.ffn_norm.weight": (DIM,)}
        return {key: torch.randn(shape, generator=generator) * (0.2 if len(shape) == 2 else 0.3) + (1 if key.endswith("norm.weight") else 0)
                for key, shape in shapes.items()}


class RefereeTest(ProbedCase):
    def test_loss_logits_and_gradients_are_those_of_the_formulas(self):
        tokens, labels = self.tokens()
        for kv_heads in (HEADS, 4):
            with self.subTest(kv_heads=kv_heads):
                weights = {key: value.double().requires_grad_() for key, value in self.weights(kv_heads).items()}
                result, out = self.probe(f"kv_{kv_heads}", "float64", weights, tokens, labels, n_kv_heads=kv_heads)
                self.assertEqual({row["name"]: tuple(row["shape"]) for row in result["parameters"]},
                                 {key: tuple(value.shape) for key, value in weights.items()})
                logits = referee_logits(tokens, weights, kv_heads)
                loss = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
                loss.backward()
                self.assertAlmostEqual(result["loss_sum"] / loss.item(), 1, delta=1e-12)
                found = torch.from_numpy(numpy.fromfile(out / "logits.bin", "<f4")).view(ROWS, LENGTH, VOCAB)
                self.assert_close(found, logits, 1e-6, "logits")  # written in float32
                for key, value in weights.items():
                    gradient = torch.from_numpy(numpy.fromfile(out / "gradients" / f"{key}.bin", "<f4")).view(value.shape)
                    self.assertGreater(value.grad.abs().max().item(), 0, key)
                    self.assert_close(gradient, value.grad, 1e-6, key)

    def assert_close(self, found, expected, limit, what):
        expected = expected.detach()
        self.assertLess((found.double() - expected).abs().max().item(), limit * expected.abs().max().item(), what)

    def test_logits_are_those_of_diffllama(self):
        """transformers lists the first heads of all pairs before the second ones, has no weight in the pairs' norm, and values come in
        halves of the same kind."""
        hd, tokens = DIM // HEADS, self.tokens()[0]
        config = transformers.DiffLlamaConfig(
            vocab_size=VOCAB, hidden_size=DIM, intermediate_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            num_key_value_heads=HEADS, rms_norm_eps=EPS, attn_implementation="eager", pad_token_id=None,
            rope_parameters={"rope_theta": 10000.0, "rope_type": "default"})
        model = transformers.DiffLlamaForCausalLM(config).eval()
        weights = {key: torch.ones_like(value) if key.endswith("attention.norm.weight") else value for key, value in self.weights().items()}
        apart = torch.tensor([2 * pair + part for part in (0, 1) for pair in range(HEADS // 2)])
        names = {"wq": "q_proj", "wk": "k_proj", "wv": "v_proj", "wo": "o_proj"}
        state = {"model.embed_tokens.weight": weights["tok_embeddings.weight"], "model.norm.weight": weights["norm.weight"],
                 "lm_head.weight": weights["output.weight"]}
        for layer in range(LAYERS):
            ours, theirs = f"layers.{layer}", f"model.layers.{layer}"
            for one, other in names.items():
                value = weights[f"{ours}.attention.{one}.weight"]
                if one in ("wq", "wk", "wv"):
                    value = value.view(HEADS, hd, DIM)[apart].reshape(DIM, DIM)
                state[f"{theirs}.self_attn.{other}.weight"] = value
            for key in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"):
                state[f"{theirs}.self_attn.{key}"] = weights[f"{ours}.attention.{key}"]
            for one, other in (("w1", "gate"), ("w2", "down"), ("w3", "up")):
                state[f"{theirs}.mlp.{other}_proj.weight"] = weights[f"{ours}.feed_forward.{one}.weight"]
            state[f"{theirs}.input_layernorm.weight"] = weights[f"{ours}.attention_norm.weight"]
            state[f"{theirs}.post_attention_layernorm.weight"] = weights[f"{ours}.ffn_norm.weight"]
        model.load_state_dict(state)
        _, out = self.probe("diffllama", "float32", weights, tokens, tokens)
        found = torch.from_numpy(numpy.fromfile(out / "logits.bin", "<f4")).view(ROWS, LENGTH, VOCAB)
        with torch.no_grad():
            self.assert_close(found, model(tokens).logits, 1e-5, "logits")
            self.assertGreater((found - model(tokens.flip(0)).logits).abs().max().item(), 1)


class GenerateTest(Case):
    def test_the_cache_gives_the_same_ids_under_every_layout(self):
        saves = ["--checkpoint.enable", "--checkpoint.interval", "100", "--training.steps", "40", "--training.dtype", "float32"]
        run = train(self.out, 1, *SHORT, *saves)
        self.assertEqual(run.returncode, 0, run.stderr)
        found = []
        for ranks, flags in ((1, []), (1, ["--no-cache"]), (2, [P + "tensor_parallel_degree", 2]), (2, [P + "pipeline_parallel_degree", 2])):
            launch = ["launch", "--nproc", ranks, "--log-dir", self.folder / "logs", "--"] if ranks > 1 else []
            run = titan_installed(*launch, "generate", "--checkpoint", self.out / "checkpoint", "--plugins.paths", PLUGINS, "--prompt",
                                  "The king said", "--prompt", "A", "--max-new-tokens", 40, "--json", "--ignore-eos", *flags)
            self.assertEqual(run.returncode, 0, run.stderr)
            lines = [json.loads(line[line.index("{"):]) for line in run.stdout.splitlines() if "{" in line]
            found.append([line["ids"] for line in lines])
        self.assertEqual([len(ids) for ids in found[0]], [40, 40])
        for other in found[1:]:
            self.assertEqual(other, found[0])


if __name__ == "__main__":
    main()
