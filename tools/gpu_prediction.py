#!/usr/bin/env python3
"""Predicts the time of a training step on one GPU, operation by operation, from bytes moved and FLOPs (a roofline model).

    tools/gpu_prediction.py                                              Llama 3 1B and 8B in bf16 and float8, on H100 and H200
    tools/gpu_prediction.py --model 8B --card H200 --recipe bf16         one of them, with every operation
    tools/gpu_prediction.py --card H100 --bandwidth 3.1e12 --gemm 7.6e14 with ceilings measured on a card
    tools/gpu_prediction.py --json -                                     JSON on standard output

The time of an operation is the larger of its memory time and its arithmetic time. The ceilings of a card are its copy bandwidth and
the rate of a large matrix product; EFFICIENCY is the share of them that each kind of operation reaches. These shares were measured
on an H200 (docs/results/gpu.md), except those marked as assumed; an H100 is assumed to reach the same. The list of operations follows
the code of a step: core/train, sdk/src/nn, sdk/src/ops, the plugins llama, fsdp, adamw and float8, and the kernels of the device
cuda. Update it when they launch other operations.

MFU divides by the card's peak in bf16, as `titan bench` does (docs/guides/bench.md), and counts attention in its two ways.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[1]
TITAN = ROOT / "build/release/bin/titan"
PEAK = 989e12  # bf16 without sparsity: H100 SXM and H200, by NVIDIA's data sheets
SECONDS_PER_LAUNCH = 5e-6  # host time of one kernel launch, including its operator
LOGITS_BYTES, LEAST_CHUNK_ROWS = 512 << 20, 512  # kernels/fused_ends.cpp and titan/ops/chunked_loss.h
MOST_PARTIALS = 512  # kernels/fused_layers.cpp: maximum number of blocks that share the rows of a norm's gradient


class Card(typing.NamedTuple):
    bandwidth: float     # bytes/s of a copy, reads plus writes
    gemm: float          # FLOP/s in bf16
    float8_gemm: float   # FLOP/s, one scale for each operand, fast accumulation


# Measured on these cards with 8,192 cubed; the H100's float8 rate is assumed to be 1.9 times bf16, as on the H200.
CARDS = {"H100": Card(3.0e12, 798e12, 1.9 * 798e12), "H200": Card(4.25e12, 800e12, 1.5e15)}

# Shares of the ceiling. Matrix products: averaged over the shapes of an 8B layer. Attention: causal, by cuDNN, at 4,096 tokens with
# head_dim 128 and at 8,192 tokens with head_dim 64; at 8,192 tokens with head_dim 128 it reaches 0.77 and 0.56.
EFFICIENCY = {
    "gemm": 0.89,              # every dimension at least 2,048
    "small gemm": 0.79,        # some dimension below 2,048
    "float8 gemm": 0.87,
    "float8 gemm, full sums": 0.84,   # without fast accumulation
    "float8 gemm, rows": 0.92,        # a scale for each row and column
    "float8 gemm, rows in full": 0.77,  # without fast accumulation: float8_linear minus its quantisation
    "attention forward": 0.67,
    "attention backward": 0.52,
    "small-head attention forward": 0.54,
    "small-head attention backward": 0.51,
    "flash attention forward": 0.32,  # where cuDNN is not used
    "flash attention backward": 0.28,
    "norm": 0.53,
    "norm backward": 0.58,
    "sum and norm": 0.82,
    "sum and norm backward": 0.67,
    "swiglu": 0.72,
    "swiglu backward": 0.78,
    "rope": 0.65,
    "cross entropy": 0.60,
    "quantize": 0.84,          # one scale; assumed for weights, whose scale is computed before
    "quantize rows": 0.76,
    "quantize turned": 0.74,   # writes the transpose; by row, the input is read twice; assumed for one scale
    "AdamW": 0.95,
    "gradient norm": 0.72,
    "embedding backward": 0.21,  # with the sort of the tokens
    "copy to bf16": 0.98,
    "copy to fp32": 0.78,      # assumed, of _foreach_copy_
    "addition": 0.94,
    "scaling": 0.24,           # a bf16 tensor times a scalar on the device
    "fill": 0.80,
    "copy": 0.85,              # assumed, for ATen's other operations
}
ARITHMETIC = ("gemm", "attention")  # kinds whose names contain one of these can be bound by arithmetic


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    dim: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    vocab: int
    tied: bool

    @property
    def head_dim(self):
        return self.dim // self.heads

    @property
    def kv_dim(self):
        return self.kv_heads * self.head_dim

    def linears(self):
        """{name: (out, in)} of a block, in the order of its forward."""
        return {"wq": (self.dim, self.dim), "wk": (self.kv_dim, self.dim), "wv": (self.kv_dim, self.dim),
                "wo": (self.dim, self.dim), "w1": (self.hidden, self.dim), "w3": (self.hidden, self.dim),
                "w2": (self.dim, self.hidden)}

    def block_parameters(self):
        return sum(out * inner for out, inner in self.linears().values()) + 2 * self.dim

    def parameters(self):
        return self.layers * self.block_parameters() + self.dim + (1 if self.tied else 2) * self.vocab * self.dim

    def num_tensors(self):
        return self.layers * 9 + 1 + (1 if self.tied else 2)

    def flops_per_token(self, seq_len):
        """(full attention, causal half), the same numbers as Titan's flops_per_token."""
        weights = self.layers * self.block_parameters() + self.dim + self.vocab * self.dim
        pairs = 12 * self.layers * self.dim * seq_len
        return 6 * weights + pairs, 6 * weights + pairs / 2


MODELS = {"1B": Model("1B", 2048, 16, 32, 8, 8192, 128256, tied=True),
          "8B": Model("8B", 4096, 32, 32, 8, 14336, 128256, tied=False)}
TOKENS = {"1B": 8192, "8B": 4096}


@dataclasses.dataclass(frozen=True)
class Job:
    model: Model
    seq_len: int
    batch: int = 1
    recipe: str = "bf16"        # of the blocks' linear layers: bf16, or float8 tensorwise or rowwise
    weights: str = "float32"    # dtype of stored weights, gradients and moments; float32 is cast to bf16 for the layers
    recompute: str = "none"     # none, selective (by operation), full
    compiled: bool = False      # compile.enable: the backend 'fused'

    @property
    def tokens(self):
        return self.seq_len * self.batch


@dataclasses.dataclass(frozen=True)
class Operation:
    phase: str   # forward, recompute, backward, update
    name: str
    kind: str    # a key of EFFICIENCY
    count: int   # per step
    bytes: float = 0   # per operation
    flops: float = 0   # per operation
    launches: int = 1  # per operation
    linear: bool = False  # part of the blocks' linear layers

    def ceiling(self, card, efficiency=None):
        """Seconds of all `count` operations, and what bounds them: arithmetic or memory."""
        share = efficiency or {self.kind: 1.0}
        rate = card.float8_gemm if self.kind.startswith("float8") else card.gemm
        does_arithmetic = any(word in self.kind for word in ARITHMETIC)
        arithmetic = self.flops / (rate * share[self.kind]) if does_arithmetic else 0
        moves = self.bytes / (card.bandwidth * (share.get("copy", 1.0) if does_arithmetic else share[self.kind]))
        return self.count * max(arithmetic, moves), "arithmetic" if arithmetic > moves else "memory"


def gemm_kind(*sizes):
    return "gemm" if min(sizes) >= 2048 else "small gemm"


def product(phase, name, count, m, n, k, **more):
    """The matrix product (m, k) times (k, n) in bf16."""
    more = {"bytes": 2 * (m * k + k * n + m * n), "kind": gemm_kind(m, n, k), **more}
    return Operation(phase, name, count=count, flops=2 * m * n * k, **more)


def moved(phase, name, count, read, written, kind="copy", **more):
    return Operation(phase, name, kind, count, bytes=read + written, **more)


def quantized(phase, name, count, size, by_row, turned=False):
    """Quantizes a matrix of `size` elements to float8; `turned`: writes the transpose, whose rows the tensor cores read."""
    if by_row and not turned:  # a row fits in registers, so it is read once
        return moved(phase, f"{name}: float8 by row", count, 2 * size, size, "quantize rows", linear=True)
    # reads the matrix twice: for the largest absolute value, then to convert
    into = "by column" if by_row else "with one scale, transposed" if turned else "with one scale"
    return moved(phase, f"{name}: float8 {into}", count, 4 * size, size, "quantize turned" if turned else "quantize",
                 launches=3 if by_row else 2, linear=True)


def quantized_weight(job, phase, name, count, size, turned=False):
    """With one scale per weight the scale is computed before; scales of rows are computed here."""
    if job.recipe == "rowwise":
        return quantized(phase, f"{name}, weight", count, size, by_row=True, turned=turned)
    return moved(phase, f"{name}: weight to float8", count, 2 * size, size, "quantize turned" if turned else "quantize",
                 linear=True)


def float8_product(phase, name, count, m, n, k, recipe, fast):
    rows = recipe == "rowwise"
    kind = "float8 gemm" + ((", rows" if fast else ", rows in full") if rows else "" if fast else ", full sums")
    return Operation(phase, name, kind, count, bytes=m * k + k * n + 2 * m * n, flops=2 * m * n * k, launches=3, linear=True)


def linear_forward(job, phase, name, count, out, inner):
    t = job.tokens
    if job.recipe == "bf16":
        return [product(phase, name, count, t, out, inner, linear=True)]
    return [quantized(phase, name, count, t * inner, job.recipe == "rowwise"),
            quantized_weight(job, phase, name, count, out * inner),
            float8_product(phase, name, count, t, out, inner, job.recipe, fast=True)]


def linear_backward(job, name, count, out, inner):
    t, phase = job.tokens, "backward"
    dx, dw = f"{name}: gradient of the input", f"{name}: gradient of the weight"
    if job.recipe == "bf16":
        return [product(phase, dx, count, t, inner, out, linear=True), product(phase, dw, count, out, inner, t, linear=True)]
    rows = job.recipe == "rowwise"
    return [quantized(phase, dx, count, t * out, rows), quantized_weight(job, phase, dx, count, out * inner, turned=True),
            float8_product(phase, dx, count, t, inner, out, job.recipe, fast=False),
            quantized(phase, f"{dw}, gradient", count, t * out, rows, turned=True),
            quantized(phase, f"{dw}, input", count, t * inner, rows, turned=True),
            float8_product(phase, dw, count, out, inner, t, job.recipe, fast=False)]


def norm(phase, name, count, job, adds=False):
    """`adds`: the kernel also adds the residual."""
    size = 2 * job.tokens * job.model.dim
    return moved(phase, name, count, (2 if adds else 1) * size, (2 if adds else 1) * size + 4 * job.tokens,
                 "sum and norm" if adds else "norm")


def norm_backward(name, count, job, adds=False):
    size = 2 * job.tokens * job.model.dim
    partial = 4 * math.ceil(job.tokens / math.ceil(job.tokens / MOST_PARTIALS)) * job.model.dim
    return moved("backward", name, count, (3 if adds else 2) * size + partial, size + partial,
                 "sum and norm backward" if adds else "norm backward", launches=2)


def added(phase, name, count, job):
    size = 2 * job.tokens * job.model.dim
    return moved(phase, name, count, 2 * size, size, "addition")


def is_by_cudnn(job):
    """The rule of composite::suits_cudnn, on the cards above."""
    return 64 <= job.model.head_dim <= 128 and job.model.head_dim % 8 == 0 and job.seq_len >= 512 and job.seq_len % 128 == 0


def attention(job, phase, count):
    """Causal, so half of the pairs. FlashAttention-2 computes dk and dv for every query head, then adds them up per key head."""
    m, t = job.model, job.tokens
    q, k = 2 * t * m.dim, 2 * t * m.kv_dim
    kind = ("small-head " if m.head_dim < 128 else "") + "attention" if is_by_cudnn(job) else "flash attention"
    flops = 4 * t * job.seq_len * m.dim / 2
    if phase != "backward":
        return Operation(phase, "attention", f"{kind} forward", count, bytes=2 * q + 2 * k, flops=flops)
    more = 0
    if not is_by_cudnn(job):  # dq in fp32, and dk and dv of query heads that share a key head
        more = 2 * 2 * q + (0 if m.heads == m.kv_heads else 2 * 2 * q)
    return Operation(phase, "attention", f"{kind} backward", count, bytes=4 * q + 4 * k + more, flops=2.5 * flops,
                     launches=3 if is_by_cudnn(job) else 5)


def rope(job, phase, count):
    """Rotates queries and keys, in the packed projection if there is one; its backward also copies the values' gradient."""
    m = job.model
    size = 2 * job.tokens * (m.dim + m.kv_dim)
    made = [moved(phase, "rope", count, size, size, "rope", launches=2)]
    if packs_inputs(job) and phase == "backward":
        values = 2 * job.tokens * m.kv_dim
        made.append(moved(phase, "gradient of the values copied to its place", count, values, values))
    return made


def packs_inputs(job):
    return job.compiled and job.recipe == "bf16"  # float8 keeps the linear layers


def block_forward(job, phase):
    m, t, count = job.model, job.tokens, job.model.layers
    kept = {"selective": ("wq", "wv", "w1", "w2")}.get(job.recompute, ()) if phase == "recompute" else ()
    sizes = m.linears()

    def linear(name):
        return [] if name in kept else linear_forward(job, phase, name, count, *sizes[name])

    made = [norm(phase, "attention_norm", count, job)]
    if packs_inputs(job):
        width = m.dim + 2 * m.kv_dim
        if not kept:  # selective recomputation keeps the rotated queries and keys
            made += [moved(phase, "wq, wk, wv put together", count, 2 * width * m.dim, 2 * width * m.dim),
                     product(phase, "wq, wk, wv", count, t, width, m.dim, linear=True), *rope(job, phase, count)]
    else:
        made += linear("wq") + linear("wk") + linear("wv") + rope(job, phase, count)
    if not (phase == "recompute" and job.recompute == "selective"):
        made.append(attention(job, phase, count))
    made += linear("wo")
    if job.compiled:
        made.append(norm(phase, "residual and ffn_norm", count, job, adds=True))
    else:
        made += [added(phase, "residual after attention", count, job), norm(phase, "ffn_norm", count, job)]
    made += linear("w1") + linear("w3")
    size = 2 * t * m.hidden
    made += [moved(phase, "swiglu", count, 2 * size, size, "swiglu"), *linear("w2")]
    made.append(added(phase, "residual after feed-forward", count, job))
    return made


def block_backward(job):
    m, t, count = job.model, job.tokens, job.model.layers
    sizes, size = m.linears(), 2 * t * m.hidden
    made = linear_backward(job, "w2", count, *sizes["w2"])
    # packed: in place, and it computes the product again, which the forward did not keep
    made.append(moved("backward", "swiglu", count, 3 * size, (3 if packs_inputs(job) else 2) * size, "swiglu backward"))
    made += linear_backward(job, "w1", count, *sizes["w1"]) + linear_backward(job, "w3", count, *sizes["w3"])
    made.append(added("backward", "sum of gradients: w1, w3", count, job))
    made.append(norm_backward("ffn_norm", count, job, adds=job.compiled))
    made += linear_backward(job, "wo", count, *sizes["wo"])
    made.append(attention(job, "backward", count))
    made += rope(job, "backward", count)
    if packs_inputs(job):
        width = m.dim + 2 * m.kv_dim
        made += [moved("backward", "wq, wk, wv put together", count, 2 * width * m.dim, 2 * width * m.dim),
                 product("backward", "wq, wk, wv: gradient of the input", count, t, m.dim, width, linear=True),
                 product("backward", "wq, wk, wv: gradient of the weight", count, width, m.dim, t, linear=True)]
    else:
        for name in ("wq", "wk", "wv"):
            made += linear_backward(job, name, count, *sizes[name])
        made.append(added("backward", "sum of gradients: wq, wk, wv", 2 * count, job))
    sums = 1 if job.compiled else 2  # additions of a residual's gradient to that of a norm
    made += [norm_backward("attention_norm", count, job), added("backward", "sum of gradients: residuals", sums * count, job)]
    return made


def chunk_rows(rows, words, dim):
    """The rule of titan::ops::fused_head_rows, in bf16."""
    if 2 * rows <= 4 * dim:
        return rows
    most = max(LEAST_CHUNK_ROWS, LOGITS_BYTES // (2 * words))
    return -(-rows // -(-rows // most))


def head(job):
    """Norm, projection and cross entropy, chunk by chunk; the forward computes the gradients too."""
    m, t, phase = job.model, job.tokens, "forward"
    rows = chunk_rows(t, m.vocab, m.dim)
    chunks, logits, weight = -(-t // rows), 2 * rows * m.vocab, m.vocab * m.dim
    read = logits + 2 * rows * m.dim
    made = [norm(phase, "output norm", 1, job),
            product(phase, "head: logits", chunks, rows, m.vocab, m.dim),
            moved(phase, "head: cross entropy", chunks, 2 * logits, logits, "cross entropy", launches=4),
            product(phase, "head: gradient of the input", chunks, rows, m.dim, m.vocab),
            product(phase, "head: gradient of the weight", 1, m.vocab, m.dim, rows,
                    bytes=read + (2 if chunks == 1 else 4) * weight)]
    if chunks > 1:
        made += [product(phase, "head: gradient of the weight, added up", chunks - 1, m.vocab, m.dim, rows,
                         bytes=read + 8 * weight),
                 moved(phase, "head: gradient of the weight to bf16", 1, 4 * weight, 2 * weight, "copy to bf16")]
    return made + [
        moved("backward", "head: gradients times that of the loss", 1, 2 * (weight + t * m.dim), 2 * (weight + t * m.dim),
              "scaling", launches=2),
        norm_backward("output norm", 1, job)]


def embedding(job):
    m, t = job.model, job.tokens
    row, table = 2 * t * m.dim, 2 * m.vocab * m.dim
    made = [moved("forward", "embedding", 1, row, row),
            moved("backward", "embedding: gradient set to zero", 1, 0, table, "fill"),
            moved("backward", "embedding: gradient", 1, row, row, "embedding backward", launches=9)]
    if m.tied:
        made.append(moved("backward", "embedding: gradient of the head added", 1, 2 * table, table, "addition"))
    return made


def whole_weights(job):
    """FSDP with one rank: fp32 weights are cast to bf16 before each use of a layer, and gradients to fp32 after it."""
    if job.weights != "float32":
        return []
    m = job.model
    blocks, table = m.layers * m.block_parameters(), m.vocab * m.dim
    first = blocks + m.dim + 2 * table                   # a tied table is cast for each of its two layers
    again = blocks + (0 if m.tied else table)            # the embedding's; the head's bf16 copy is kept
    total = m.parameters()
    return [moved("forward", "weights to bf16", 1, 4 * first, 2 * first, "copy to bf16",
                  launches=m.num_tensors() + (1 if m.tied else 0)),
            moved("backward", "weights to bf16 again", 1, 4 * again, 2 * again, "copy to bf16",
                  launches=m.layers * 9 + (0 if m.tied else 1)),
            moved("backward", "gradients to fp32", 1, 2 * total, 4 * total, "copy to fp32", launches=m.num_tensors())]


def update(job):
    m = job.model
    total, wide = m.parameters(), 4 if job.weights == "float32" else 2
    made = [moved("update", "gradient norm", 1, wide * total, 0, "gradient norm", launches=m.num_tensors() + 8),
            # also multiplies the gradients by the clipping factor
            moved("update", "AdamW", 1, 4 * wide * total, 3 * wide * total, "AdamW", launches=m.num_tensors() + 3)]
    if job.recipe == "tensorwise":
        linears = m.layers * (m.block_parameters() - 2 * m.dim)
        made.append(moved("forward", "scales of the weights", 1, wide * linears, 0, "gradient norm",
                          launches=3 * 7 * m.layers + 8, linear=True))
    return made


def operations(job):
    made = [*whole_weights(job), *embedding(job), *block_forward(job, "forward")]
    if job.recompute != "none":
        made += block_forward(job, "recompute")
    return made + head(job) + block_backward(job) + update(job)


def predict(job, card, efficiency=None):
    """The figures of the step and of each operation, as in the JSON output."""
    efficiency = efficiency or EFFICIENCY
    rows = []
    for operation in operations(job):
        ceiling, bound = operation.ceiling(card)
        expected, _ = operation.ceiling(card, efficiency)
        rows.append({"phase": operation.phase, "operation": operation.name, "kind": operation.kind, "count": operation.count,
                     "bytes": operation.bytes * operation.count, "flops": operation.flops * operation.count, "bound": bound,
                     "launches": operation.launches * operation.count, "ceiling_seconds": ceiling,
                     "expected_seconds": expected, "linear": operation.linear})
    device = sum(row["expected_seconds"] for row in rows)
    launches = sum(row["launches"] for row in rows)
    host = launches * SECONDS_PER_LAUNCH
    step = max(device, host)
    full, half = (flops * job.tokens for flops in job.model.flops_per_token(job.seq_len))
    linear = [row for row in rows if row["linear"]]
    return {"model": job.model.name, "parameters": job.model.parameters(), "tokens": job.tokens, "seq_len": job.seq_len,
            "recipe": job.recipe, "weights": job.weights, "recompute": job.recompute, "compiled": job.compiled,
            "card": card._asdict(), "flops_per_step": {"full_attention": full, "causal_half": half},
            "ceiling_seconds": sum(row["ceiling_seconds"] for row in rows), "device_seconds": device, "launches": launches,
            "host_seconds": host, "step_seconds": step, "tokens_per_second": job.tokens / step,
            "mfu": {"full_attention": full / step / PEAK, "causal_half": half / step / PEAK},
            "linear_flops_per_second": 6 * job.tokens * job.model.layers * (job.model.block_parameters() - 2 * job.model.dim) /
            sum(row["expected_seconds"] for row in linear if row["phase"] != "recompute"),
            "operations": rows}


def estimated_peak(job, titan=TITAN):
    """Peak bytes on the device, from `titan estimate`; None without a build."""
    if not titan.exists():
        return None
    config = {"1B": "llama3_2_1b", "8B": "llama3_8b"}[job.model.name]
    words = [titan, "estimate", "--job.config_file", ROOT / f"train_configs/{config}.toml", "--ranks", "1", "--json",
             "--training.seq_len", job.seq_len, "--training.local_batch_size", job.batch,
             "--training.dtype", job.weights, "--training.mixed_precision_param", "bfloat16",
             "--activation_checkpoint.mode", job.recompute, f"--compile.enable={str(job.compiled).lower()}"]
    if job.recipe != "bf16":
        words += ["--model.converters", "quantize.linear.float8", "--quantize.linear.float8.recipe_name", job.recipe,
                  "--quantize.linear.float8.filter_fqns", "output"]
    run = subprocess.run([str(word) for word in words], cwd=ROOT, text=True, capture_output=True)
    if run.returncode:
        print(f"titan estimate: {run.stderr.strip()}", file=sys.stderr)
        return None
    return max(rank["peak_bytes"] for rank in json.loads(run.stdout)["ranks"])


def by_name(rows):
    """Sums the rows of the same operation over all linear layers; the slowest first."""
    sums = {}
    for row in rows:
        name = row["operation"]
        if row["linear"]:
            name = "linear layers: " + (name.rpartition(": ")[2] if ": " in name else name if " " in name else "product")
        key = row["phase"], name, row["kind"], row["bound"]
        total = sums.setdefault(key, {"count": 0, "bytes": 0, "flops": 0, "launches": 0, "ceiling_seconds": 0,
                                      "expected_seconds": 0})
        for field in total:
            total[field] += row[field]
    return sorted(sums.items(), key=lambda item: -item[1]["expected_seconds"])


def title(prediction):
    parts = [f"Llama 3 {prediction['model']}, {prediction['tokens']:,} tokens", prediction["recipe"],
             f"weights in {prediction['weights']}", f"recomputation: {prediction['recompute']}"]
    return ", ".join(parts + (["compiled"] if prediction["compiled"] else []))


def summary(predictions):
    head = ["job", "card", "step", "tokens/s", "MFU full attention", "MFU causal half", "launches (host)", "linear layers",
            "memory"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name, prediction in predictions:
        peak = prediction.get("peak_bytes")
        lines.append("| " + " | ".join([
            title(prediction), name, f"{prediction['step_seconds'] * 1e3:.0f} ms", f"{prediction['tokens_per_second']:,.0f}",
            f"{prediction['mfu']['full_attention']:.1%}", f"{prediction['mfu']['causal_half']:.1%}",
            f"{prediction['launches']:,} ({prediction['host_seconds'] * 1e3:.0f} ms)",
            f"{prediction['linear_flops_per_second'] / 1e12:.0f} TFLOP/s", f"{peak / 2**30:.1f} GiB" if peak else ""]) + " |")
    return "\n".join(lines)


def details(name, prediction):
    lines = [f"## {title(prediction)}, {name}", "",
             "| operation | phase | count | GB | TFLOP | bound | at the ceiling | share | expected | of the step |",
             "|" + " --- |" * 10]
    for (phase, operation, kind, bound), row in by_name(prediction["operations"]):
        expected = row["expected_seconds"]
        lines.append(f"| {operation} | {phase} | {row['count']} | {row['bytes'] / 1e9:.2f} | {row['flops'] / 1e12:.2f} | "
                     f"{bound} | {row['ceiling_seconds'] * 1e3:.2f} ms | {row['ceiling_seconds'] / expected:.0%} | "
                     f"{expected * 1e3:.2f} ms | {expected / prediction['device_seconds']:.1%} |")
    return "\n".join(lines)


def jobs_of(options):
    for model in options.model:
        for card in options.card:
            for recipe in options.recipe:
                # chosen so that weights and optimizer states fit: 8B in fp32 needs 120 GiB
                weights = options.weights or ("bfloat16" if (model, card) == ("8B", "H100") else "float32")
                yield card, Job(MODELS[model], options.seq_len or TOKENS[model], options.batch, recipe, weights,
                                options.recompute, options.compile)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--card", action="append", choices=CARDS)
    parser.add_argument("--recipe", action="append", choices=["bf16", "tensorwise", "rowwise"])
    parser.add_argument("--weights", choices=["float32", "bfloat16"], help="dtype of the stored weights; default: float32, or bfloat16 for 8B on H100")
    parser.add_argument("--recompute", choices=["none", "selective", "full"], default="none")
    parser.add_argument("--compile", action="store_true", help="predict for compile.enable = true")
    parser.add_argument("--seq-len", type=int)
    parser.add_argument("--batch", type=int, default=1, help="sequences per step")
    parser.add_argument("--bandwidth", type=float, help="bytes/s of a copy, instead of the card's")
    parser.add_argument("--gemm", type=float, help="FLOP/s of a large product in bf16, instead of the card's")
    parser.add_argument("--float8-gemm", type=float, help="FLOP/s of a large product in float8, instead of the card's")
    parser.add_argument("--no-estimate", action="store_true", help="do not run titan estimate for the memory column")
    parser.add_argument("--json", metavar="FILE", help="write all figures as JSON; - for standard output")
    parser.add_argument("--markdown", metavar="FILE", default="-", help="write the tables as Markdown; default: - for standard output")
    options = parser.parse_args()
    is_one = all(len(chosen or ()) == 1 for chosen in (options.model, options.card, options.recipe))
    options.model, options.card = options.model or list(MODELS), options.card or list(CARDS)
    options.recipe = options.recipe or ["bf16", "tensorwise", "rowwise"]
    predictions = []
    for name, job in jobs_of(options):
        card = CARDS[name]
        card = Card(options.bandwidth or card.bandwidth, options.gemm or card.gemm, options.float8_gemm or card.float8_gemm)
        prediction = predict(job, card)
        if not options.no_estimate:
            prediction["peak_bytes"] = estimated_peak(job)
        predictions.append((name, prediction))
    if options.json:
        text = json.dumps({"schema": 1, "peak_flops": PEAK, "seconds_per_launch": SECONDS_PER_LAUNCH, "efficiency": EFFICIENCY,
                           "predictions": [{"name": name, **prediction} for name, prediction in predictions]}, indent=1)
        if options.json == "-":
            print(text)
            return
        pathlib.Path(options.json).write_text(text + "\n")
    text = "\n\n".join([summary(predictions)] + ([details(*predictions[0])] if is_one else []))
    if options.markdown == "-":
        print(text)
    else:
        pathlib.Path(options.markdown).write_text(text + "\n")


if __name__ == "__main__":
    main()
