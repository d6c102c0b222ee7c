"""Memory and traffic of a rank in a step, from a Llama's dimensions and its layout only: no figure comes from Titan.

scaling.py compares them with the counters of simulated and real ranks; docs/results/scaling.md has the formulas in words.
"""

import dataclasses
import math

ALIGNMENT = 16             # bytes; alignment of parameters in the buffer of an all-gather
LOSS_CHUNK = 32 << 20      # bytes of fp32 logits that loss parallelism computes at a time, at least 128 tokens
STATE = 4                  # bytes of a stored parameter, of its gradient, of each moment: fp32


@dataclasses.dataclass(frozen=True)
class Part:
    """The part of a model in one pipeline stage."""
    blocks: int
    has_embedding: bool
    has_head: bool


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
        """6 per weight of a matrix product (all but the embedding), 12 per layer, width and token of full attention."""
        return 6 * (self.parameters - self.vocab * self.d) + 12 * self.layers * self.d * sequence

    def units(self, tensor=1, part=None):
        """Per FSDP unit the (rows, columns) of each parameter after tensor parallelism: embedding, blocks, head."""
        assert self.vocab % tensor == self.kv_heads % tensor == self.ffn % tensor == 0, (self, tensor)
        part = part or self.part(1, 0)
        d, kv = self.d, self.d // self.heads * self.kv_heads
        block = [(d, 1), (d // tensor, d), (kv // tensor, d), (kv // tensor, d), (d, d // tensor),
                 (d, 1), (self.ffn // tensor, d), (d, self.ffn // tensor), (self.ffn // tensor, d)]
        return [*[[(self.vocab // tensor, d)]] * part.has_embedding, *[block] * part.blocks,
                *[[(d, 1), (self.vocab // tensor, d)]] * part.has_head]

    def part(self, stages, stage):
        """Embedding and head count as one block each; the first stages get the remainder."""
        units, rest = divmod(self.layers + 2, stages)
        is_first, is_last = stage == 0, stage == stages - 1
        return Part(units + (stage < rest) - is_first - is_last, is_first, is_last)

    def parameters_of(self, part):
        return part.blocks * self.block + (part.has_embedding + part.has_head) * self.vocab * self.d + part.has_head * self.d


@dataclasses.dataclass(frozen=True)
class DeepSeek(Model):
    """DeepSeek-V3: latent queries, keys and values, `dense` blocks with a feed-forward, then blocks with experts."""
    q_rank: int
    kv_rank: int
    nope: int
    rope: int
    value: int
    dense: int
    experts: int
    chosen: int
    shared: int
    expert_ffn: int

    @property
    def attention(self):
        return [(self.q_rank, self.d), (self.q_rank, 1), (self.heads * (self.nope + self.rope), self.q_rank),
                (self.kv_rank + self.rope, self.d), (self.kv_rank, 1), (self.heads * (self.nope + self.value), self.kv_rank),
                (self.d, self.heads * self.value), (self.d, 1), (self.d, 1)]

    def blocks_with_experts(self, part):
        assert not part.has_embedding or part.blocks >= self.dense
        return part.blocks - self.dense * part.has_embedding

    def units(self, tensor=1, part=None):
        """All parameters except routed experts and the biases of their choice."""
        assert tensor == 1, "no formula for tensor parallelism"
        part = part or self.part(1, 0)
        with_experts = self.blocks_with_experts(part)
        shared = self.shared * self.expert_ffn
        dense = [*self.attention, (self.ffn, self.d), (self.d, self.ffn), (self.ffn, self.d)]
        routed = [*self.attention, (self.experts, self.d), (shared, self.d), (self.d, shared), (shared, self.d)]
        return [*[[(self.vocab, self.d)]] * part.has_embedding, *[dense] * (part.blocks - with_experts), *[routed] * with_experts,
                *[[(self.d, 1), (self.vocab, self.d)]] * part.has_head]

    def expert_units(self, ranks, part):
        """Separate units if `ranks` share the experts."""
        return [[(self.experts // ranks, self.expert_ffn * self.d)] * 3] * self.blocks_with_experts(part)

    def parameters_of(self, part):
        rows = sum(self.units(1, part) + self.expert_units(1, part), [])
        return sum(rows * columns for rows, columns in rows)

    @property
    def parameters(self):
        return self.parameters_of(self.part(1, 0))


@dataclasses.dataclass(frozen=True)
class Layout:
    """Stages x replicas x shards x context x tensor ranks, with adjacent tensor ranks; `batch` rows of `sequence` tokens
    for the context x tensor ranks that hold one of the data's shards, which a pipeline takes one by one (1F1B)."""
    shards: int
    replicas: int = 1
    tensor: int = 1
    stages: int = 1
    context: int = 1
    is_ring: bool = False      # keys and values from rank to rank; else gathered at once
    is_async: bool = False
    experts: int = 1           # of the ranks with different tokens, this many share the experts
    batch: int = 1
    sequence: int = 8192
    wire: int = 2              # bytes of a gathered parameter and of an activation: bf16

    @property
    def ranks(self):
        return self.stages * self.replicas * self.shards * self.context * self.tensor

    @property
    def fsdp(self):
        """Ranks over which parameters are sharded."""
        return self.shards * self.context

    def stage(self, rank):
        return rank * self.stages // self.ranks

    @property
    def passes(self):
        """Passes through a stage in a step."""
        return self.batch if self.stages > 1 else 1

    @property
    def tokens(self):
        """Tokens of one pass on a rank; tensor parallelism cuts some activations further."""
        return self.batch // self.passes * self.sequence // self.context

    def __str__(self):
        words = [(self.stages, "stages"), (self.replicas, "replicas"), (self.shards, "shards"), (self.context, "context"),
                 (self.tensor, "tensor"), (self.experts, "of them share experts")]
        text = " x ".join(f"{size} {word}" for size, word in words if size > 1) or "1 rank"
        return text + (", ring" if self.is_ring else "") + (", async" if self.is_async else "")


def part_of(model, layout, rank):
    return model.part(layout.stages, layout.stage(rank))


def held(model, layout, rank=0):
    """Bytes held by this rank: whole chunks of rows for the first ranks of a shard group, fewer or none for the last."""
    shard = rank // layout.tensor % layout.fsdp
    elements = tensors = 0
    for rows, columns in sum(model.units(layout.tensor, part_of(model, layout, rank)), []):
        chunk = math.ceil(rows / layout.fsdp)
        elements += columns * min(max(rows - shard * chunk, 0), chunk)
        tensors += 1
    biases = 0
    if layout.experts > 1:  # the first ranks share the experts; over the others each rank's are cut
        part, others = part_of(model, layout, rank), layout.fsdp // layout.experts
        for rows, columns in sum(model.expert_units(layout.experts, part), []):
            chunk = math.ceil(rows / others)
            elements += columns * min(max(rows - shard // layout.experts * chunk, 0), chunk)
            tensors += 1
        biases = 4 * model.experts * model.blocks_with_experts(part)  # whole, not trained
    moments = 2 * STATE * elements + 4 * tensors  # and each parameter's step count
    return {"parameters": STATE * elements + biases, "gradients": STATE * elements, "optimizer states": moments,
            "together": 2 * STATE * elements + biases + moments}


def sent(model, layout, rank=0):
    """(bytes, calls) of a rank and step for each group and operation. Of a buffer that is split over W ranks, W - 1 of
    W parts are sent; an all-reduce is a reduce-scatter and an all-gather."""
    part = part_of(model, layout, rank)
    traffic = {**_shard_traffic(model, layout, part), **_tensor_traffic(model, layout, part),
               **_context_traffic(model, layout, part), **_stage_traffic(model, layout, part),
               **_expert_traffic(model, layout, part)}
    if layout.ranks > 1:  # the gradient norm, one fp64
        traffic["world all_reduce"] = (2 * 8 * (layout.ranks - 1) / layout.ranks, 1)
    return traffic


def _shard_traffic(model, layout, part):
    gather_slots, reduce_slots = [], []  # bytes of one rank's part of each unit; every parameter padded to whole chunks
    for unit in model.units(layout.tensor, part):
        chunks = [math.ceil(rows / layout.fsdp) * columns for rows, columns in unit]
        gather_slots.append(sum(math.ceil(chunk * layout.wire / ALIGNMENT) * ALIGNMENT for chunk in chunks))
        reduce_slots.append(sum(chunks) * 4)
    traffic, others = {}, layout.fsdp - 1
    if layout.fsdp > 1:
        # the last unit is kept from forward to backward; a pipeline keeps all of them through the step
        again = [] if layout.stages > 1 else gather_slots[:-1]
        traffic["fsdp all_gather"] = (others * sum(gather_slots + again), len(gather_slots + again))
        traffic["fsdp reduce_scatter"] = (others * sum(reduce_slots), len(reduce_slots))
    if layout.replicas > 1:
        share = 2 * (layout.replicas - 1) / layout.replicas
        traffic["dp_replicate all_reduce"] = (share * sum(reduce_slots), len(reduce_slots))
    return traffic


def _expert_traffic(model, layout, part):
    """Rows to experts and back, forward and backward: 8 N k D (p - 1)/p bytes of bf16 for a layer and N tokens; before them the counts,
    an int64 for each expert. Also weights and gradients of experts over the other ranks, and a step's counts for the biases over all."""
    if layout.experts == 1:
        return {}
    blocks, others = model.blocks_with_experts(part), layout.fsdp // layout.experts
    times, share = layout.passes * blocks, (layout.experts - 1) / layout.experts
    rows = 4 * layout.tokens * model.chosen * model.d * layout.wire
    units = [[math.ceil(rows / others) * columns for rows, columns in unit] for unit in model.expert_units(layout.experts, part)]
    traffic = {"ep all_to_all": (times * share * (rows + 8 * model.experts), times * 5),
               "loss all_reduce": (blocks * 2 * 8 * model.experts * (layout.fsdp - 1) / layout.fsdp, blocks)}
    if others > 1:  # a pipeline keeps gathered parameters through the step
        traffic["fsdp-ep all_gather"] = ((others - 1) * layout.wire * sum(map(sum, units)), blocks)
        traffic["fsdp-ep reduce_scatter"] = ((others - 1) * 4 * sum(map(sum, units)), blocks)
    return traffic


def _tensor_traffic(model, layout, part):
    size, tokens = layout.tensor, layout.tokens
    if size == 1:
        return {}
    others, passes = size - 1, layout.passes
    piece = others * tokens // size * model.d * layout.wire  # sent when a sequence-sharded activation is gathered
    # per block attention and feed-forward, each in and out, forward and backward: half gathers, half scatters
    in_blocks, at_ends = 4 * part.blocks, part.has_embedding + part.has_head  # after the embedding, before the head
    calls = passes * (at_ends + (0 if layout.is_async else in_blocks))
    norms = passes * (2 * part.blocks + part.has_head)  # whose gradients are summed in fp32
    statistics = chunks = 0
    if part.has_head:
        most = max(512, LOSS_CHUNK // (4 * model.vocab // size))
        chunk_rows = math.ceil(tokens / math.ceil(tokens / most))
        chunks = passes * math.ceil(tokens / chunk_rows)
        statistics = passes * others * 3 * 4 * tokens  # per token the maximum, the sum and the label's logit over a rank's part of the vocabulary
    traffic = {"tp all_gather": (calls * piece + statistics, calls + chunks),
               "tp reduce_scatter": (calls * piece, calls),
               "tp all_reduce": (norms * 2 * model.d * 4 * others / size, norms)}
    if layout.is_async:  # the same pieces, sent one by one
        messages = passes * 2 * in_blocks * others
        traffic["tp send"] = (passes * 2 * in_blocks * piece, messages)
        traffic["tp receive"] = (0, messages)
    return traffic


def _context_traffic(model, layout, part):
    """Keys and values of a rank's tokens, in each block once for the forward and once for the backward; then their gradients."""
    others = layout.context - 1
    if not others:
        return {}
    times = layout.passes * part.blocks
    elements = 2 * layout.tokens * model.d // model.heads * model.kv_heads // layout.tensor
    values, gradients = elements * layout.wire, elements * 4
    if layout.is_ring:  # the gradients travel once around the ring, back to their rank
        messages = times * (2 * others + layout.context)
        return {"cp send": (times * (2 * others * values + layout.context * gradients), messages),
                "cp receive": (0, messages)}
    return {"cp all_gather": (times * 2 * others * values, times * 2),
            "cp reduce_scatter": (times * others * gradients, times)}


def _stage_traffic(model, layout, part):
    """An activation to the next stage and its gradient to the previous stage, for each pass."""
    if layout.stages == 1:
        return {}
    messages = layout.passes * (2 - part.has_embedding - part.has_head)
    return {"pp send": (messages * layout.tokens // layout.tensor * model.d * layout.wire, messages),
            "pp receive": (0, messages)}
