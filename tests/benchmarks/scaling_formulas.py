"""What a rank holds and sends in a step, from a Llama's dimensions and its layout alone: no figure comes from Titan.

scaling.py compares it with what played and real ranks count; docs/scaling.md is the same in words.
"""

import dataclasses
import math

ALIGNMENT = 16             # bytes; where a parameter may start in the buffer of an all-gather
LOSS_CHUNK = 32 << 20      # bytes of fp32 logits that loss parallelism makes at a time, at least 128 tokens
STATE = 4                  # bytes of a stored parameter, of its gradient, of each moment: fp32


@dataclasses.dataclass(frozen=True)
class Model:
    """A Llama with separate embedding and head."""
    d: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int

    @property
    def block(self):
        kv = self.d // self.heads * self.kv_heads
        return 2 * self.d * self.d + 2 * kv * self.d + 3 * self.d * self.ffn + 2 * self.d

    @property
    def parameters(self):
        return 2 * self.vocab * self.d + self.layers * self.block + self.d

    def flops_per_token(self, sequence):
        """6 per weight that multiplies (all but the embedding), 12 per layer, width and token of full attention."""
        return 6 * (self.parameters - self.vocab * self.d) + 12 * self.layers * self.d * sequence

    def units(self, tensor=1):
        """Per FSDP unit the (rows, columns) that tensor parallelism leaves of each parameter: embedding, blocks, head."""
        assert self.vocab % tensor == self.kv_heads % tensor == self.ffn % tensor == 0, (self, tensor)
        d, kv = self.d, self.d // self.heads * self.kv_heads
        block = [(d, 1), (d // tensor, d), (kv // tensor, d), (kv // tensor, d), (d, d // tensor),
                 (d, 1), (self.ffn // tensor, d), (d, self.ffn // tensor), (self.ffn // tensor, d)]
        return [[(self.vocab // tensor, d)], *[block] * self.layers, [(d, 1), (self.vocab // tensor, d)]]


@dataclasses.dataclass(frozen=True)
class Layout:
    """`shards` x `replicas` x `tensor` ranks, the tensor ranks side by side; `batch` rows of `sequence` tokens a rank."""
    shards: int
    replicas: int = 1
    tensor: int = 1
    is_async: bool = False
    batch: int = 1
    sequence: int = 8192
    wire: int = 2              # bytes of a gathered parameter and of an activation: bf16

    @property
    def ranks(self):
        return self.shards * self.replicas * self.tensor

    def __str__(self):
        words = [(self.replicas, "replicas"), (self.shards, "shards"), (self.tensor, "tensor")]
        text = " x ".join(f"{size} {word}" for size, word in words if size > 1) or "1 rank"
        return text + (", async" if self.is_async else "")


def held(model, layout, rank=0):
    """Bytes of this rank: whole chunks of rows for the first ranks of a shard group, less or none for the last."""
    shard = rank // layout.tensor % layout.shards
    elements = tensors = 0
    for rows, columns in sum(model.units(layout.tensor), []):
        chunk = math.ceil(rows / layout.shards)
        elements += columns * min(max(rows - shard * chunk, 0), chunk)
        tensors += 1
    moments = 2 * STATE * elements + 4 * tensors  # and each parameter's count of steps
    return {"parameters": STATE * elements, "gradients": STATE * elements, "optimizer states": moments,
            "together": 2 * STATE * elements + moments}


def sent(model, layout):
    """(bytes, calls) of a rank and step for each group and operation. Of a buffer that is shared out over W ranks, W - 1 of
    W parts travel; an all-reduce is a reduce-scatter and an all-gather."""
    traffic = {**_shard_traffic(model, layout), **_tensor_traffic(model, layout)}
    if layout.ranks > 1:  # the gradient norm, one fp64
        traffic["world all_reduce"] = (2 * 8 * (layout.ranks - 1) / layout.ranks, 1)
    return traffic


def _shard_traffic(model, layout):
    gather_slots, reduce_slots = [], []  # bytes of one rank's part of each unit; every parameter padded to whole chunks
    for unit in model.units(layout.tensor):
        chunks = [math.ceil(rows / layout.shards) * columns for rows, columns in unit]
        gather_slots.append(sum(math.ceil(chunk * layout.wire / ALIGNMENT) * ALIGNMENT for chunk in chunks))
        reduce_slots.append(sum(chunks) * 4)
    traffic, others = {}, layout.shards - 1
    if layout.shards > 1:
        gathered = 2 * sum(gather_slots) - gather_slots[-1]  # the last unit is kept from forward to backward
        traffic["fsdp all_gather"] = (others * gathered, 2 * len(gather_slots) - 1)
        traffic["fsdp reduce_scatter"] = (others * sum(reduce_slots), len(reduce_slots))
    if layout.replicas > 1:
        part = 2 * (layout.replicas - 1) / layout.replicas
        traffic["dp_replicate all_reduce"] = (part * sum(reduce_slots), len(reduce_slots))
    return traffic


def _tensor_traffic(model, layout):
    size, tokens = layout.tensor, layout.batch * layout.sequence
    if size == 1:
        return {}
    others = size - 1
    piece = others * tokens // size * model.d * layout.wire  # sent when a sequence-sharded activation is gathered
    # per block attention and feed-forward, each in and out, forward and backward: half gathers, half scatters
    in_blocks, at_ends = 4 * model.layers, 2  # the ends: behind the embedding, before the head
    most = max(128, LOSS_CHUNK // (4 * model.vocab // size))
    chunk_rows = math.ceil(tokens / math.ceil(tokens / most))
    chunks = math.ceil(tokens / chunk_rows)
    statistics = others * 3 * 4 * tokens  # per token the maximum, the sum and the label's logit of a rank's words
    norms = 2 * model.layers + 1
    calls = at_ends + (0 if layout.is_async else in_blocks)
    traffic = {"tp all_gather": (calls * piece + statistics, calls + chunks),
               "tp reduce_scatter": (calls * piece, calls),
               "tp all_reduce": (norms * 2 * model.d * layout.wire * others / size, norms)}
    if layout.is_async:  # the same pieces, sent one by one
        messages = 2 * in_blocks * others
        traffic["tp send"] = (2 * in_blocks * piece, messages)
        traffic["tp receive"] = (0, messages)
    return traffic
