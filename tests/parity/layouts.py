"""Models and layouts of the parity ladder. Used by ladder.py."""

import dataclasses
import json
import pathlib

GLOBAL_BATCH = 8
SCHEDULES = ("GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV")
DEEP = 6  # blocks; with embedding and head they form the 8 stages of 4 ranks with 2 each

MODELS = {
    "plain": {"model.dim": 64, "model.n_heads": 8, "model.n_kv_heads": 4},
    # head and embedding share one weight
    "tied": {"model.dim": 64, "model.n_heads": 8, "model.n_kv_heads": 4, "model.enable_weight_tying": None},
    # the number of ranks divides neither the vocabulary, the feed-forward's hidden size nor dim
    "uneven": {"model.dim": 70, "model.n_heads": 4, "model.n_kv_heads": 4, "model.head_dim": 18,
               "model.vocab_size": 2051, "model.multiple_of": 1, "model.ffn_dim_multiplier": 1.3},
    # all heads share the norm weights of queries and keys; heads are wider than dim / n_heads, the embedding is tied
    "qwen3": {"model.name": "qwen3", "model.dim": 64, "model.n_heads": 8, "model.n_kv_heads": 4, "model.head_dim": 16,
              "model.hidden_dim": 171},
    # eight experts in every block, of which a token uses two
    "mixtral": {"model.name": "mixtral", "model.dim": 64, "model.n_heads": 8, "model.n_kv_heads": 4, "model.hidden_dim": 48,
                "model.load_balance_coeff": 1e-3},
    # fewer experts than ranks: data parallelism shards within their matrices
    "two_experts": {"model.name": "mixtral", "model.dim": 64, "model.n_heads": 8, "model.n_kv_heads": 4, "model.hidden_dim": 48,
                    "model.num_experts": 2, "model.load_balance_coeff": 1e-3},
    # latent keys and values, a dense first block, shared experts, groups of experts
    "deepseek": {"model.name": "deepseek_v3", "model.dim": 64, "model.n_heads": 4, "model.inter_dim": 96, "model.moe_inter_dim": 48,
                 "model.kv_lora_rank": 32, "model.q_lora_rank": 24, "model.qk_nope_head_dim": 16, "model.qk_rope_head_dim": 8,
                 "model.v_head_dim": 12, "model.num_expert_groups": 4, "model.num_limited_groups": 2},
    # a window that is shorter than the row, sinks, biases
    "gpt_oss": {"model.name": "gpt_oss", "model.dim": 64, "model.n_heads": 8, "model.n_kv_heads": 4, "model.head_dim": 16,
                "model.moe_hidden_dim": 48, "model.sliding_window_size": 20, "model.original_seq_len": 32},
}
LLAMAS = ("plain", "tied", "uneven")
WITH_EXPERTS = ("mixtral", "deepseek", "gpt_oss")


@dataclasses.dataclass(frozen=True)
class Rung:
    """One layout. `layers` and `documents` choose the run to compare with."""
    name: str
    replicate: int = 1
    shard: int = 1
    context: int = 1
    tensor: int = 1
    pipeline: int = 1
    accumulate: int = 1
    experts: int = 1  # ranks of the other axes that share the experts
    expert_tensor: int = 1
    layers: int = 2
    documents: bool = False
    models: tuple = LLAMAS
    is_long: bool = False  # runs with --full only
    # if scores are nearly equal, fp32 may choose another expert, and a token's loss jumps
    is_exact: bool = False  # runs in float64 only
    more: dict = dataclasses.field(default_factory=dict)

    @property
    def ranks(self):
        return self.replicate * self.shard * self.context * self.tensor * self.pipeline

    def options(self, folder):
        """Flags of a run. `folder`: filled by prepare()."""
        data_parallel = self.replicate * self.shard
        own = {key: value.format(folder=folder) if isinstance(value, str) else value for key, value in self.more.items()}
        documents = {
            "training.dataset_path": folder / "short.jsonl",
            "data.isolate_documents": None,
            "data.no_labels_cross_documents": None,
        }
        return {
            "model.n_layers": self.layers,
            "parallelism.data_parallel_replicate_degree": self.replicate,
            "parallelism.data_parallel_shard_degree": self.shard,
            "parallelism.context_parallel_degree": self.context,
            "parallelism.tensor_parallel_degree": self.tensor,
            "parallelism.pipeline_parallel_degree": self.pipeline,
            **({"parallelism.expert_parallel_degree": self.experts} if self.experts > 1 else {}),
            **({"parallelism.expert_tensor_parallel_degree": self.expert_tensor} if self.expert_tensor > 1 else {}),
            "training.local_batch_size": GLOBAL_BATCH // data_parallel // self.accumulate,
            **(documents if self.documents else {}),
            **own,
        }


def prepare(folder, corpus):
    """Writes files that some rungs read: the tables of the csv schedule, and documents of which several share a row."""
    for ranks in (2, 4):
        (folder / f"schedule_{ranks}.csv").write_text(csv_table(ranks, GLOBAL_BATCH))
    texts = [json.loads(line)["text"] for line in pathlib.Path(corpus).read_text().splitlines()[:400]]
    short = [" ".join(text.split()[:5 + 7 * number % 23]) for number, text in enumerate(texts)]
    (folder / "short.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in short))


def csv_table(ranks, microbatches):
    """A schedule that no plugin offers: stages from the last rank to the first, two forwards and two backwards in turn,
    the later microbatch's backward first and split in two."""
    rows = []
    for stage in reversed(range(ranks)):
        row = [f"{stage}F{microbatch}" for microbatch in range(min(microbatches, 2 * (ranks - stage)))]
        forwards = len(row)
        for microbatch in range(0, microbatches, 2):
            row += [f"{stage}I{microbatch + 1}", f"{stage}B{microbatch}", f"{stage}W{microbatch + 1}"]
            row += [f"{stage}F{following}" for following in range(forwards, min(microbatches, forwards + 2))]
            forwards += 2
        rows.append(",".join(row))
    return "\n".join(rows) + "\n"


NO_LOSS_PARALLEL = {"parallelism.disable_loss_parallel": None}
NO_SEQUENCE_PARALLEL = {"parallelism.tensor.no_sequence_parallel": None}
ASYNC = {"parallelism.enable_async_tensor_parallel": None}


def schedule(name):
    return {"parallelism.pipeline_parallel_schedule": name}


def rotate(method, balancer="headtail"):
    return {"parallelism.context_parallel_rotate_method": method, "parallelism.context_parallel_load_balancer": balancer}


def reshard(policy):
    return {"parallelism.fsdp_reshard_after_forward": policy}


def tensor_rungs(ranks):
    variants = [
        ("", {}),
        (", loss parallel off", NO_LOSS_PARALLEL),
        (", async", ASYNC),
        (", async, loss parallel off", {**ASYNC, **NO_LOSS_PARALLEL}),
        (", sequence parallel off", NO_SEQUENCE_PARALLEL),
        (", sequence and loss parallel off", {**NO_SEQUENCE_PARALLEL, **NO_LOSS_PARALLEL}),
    ]
    return [Rung(f"TP {ranks}{text}", tensor=ranks, more=more) for text, more in variants]


def schedule_rungs(ranks):
    layers = 2 if ranks == 2 else DEEP
    rungs = [Rung(f"PP {ranks}, {name}", pipeline=ranks, layers=layers, more=schedule(name)) for name in SCHEDULES]
    table = {"parallelism.pipeline_parallel_schedule_csv": f"{{folder}}/schedule_{ranks}.csv"}
    return [*rungs, Rung(f"PP {ranks}, csv", pipeline=ranks, layers=layers, more=table)]


def context_rungs(ranks):
    return [Rung(f"CP {ranks}, {method}, {balancer}", context=ranks,
                 more=rotate(method, "None" if balancer == "unbalanced" else balancer))
            for method in ("allgather", "alltoall") for balancer in ("headtail", "unbalanced")]


def document_rungs():
    both = ("allgather", "alltoall")
    return [
        *[Rung(f"CP {ranks}, {method}, documents", context=ranks, documents=True, more=rotate(method))
          for ranks in (2, 4) for method in both],
        Rung("CP 2, alltoall, unbalanced, documents", context=2, documents=True, more=rotate("alltoall", "None")),
        Rung("PP 2, documents", pipeline=2, documents=True),
        *[Rung(f"PP 2 x CP 2, {method}, documents", pipeline=2, context=2, documents=True, more=rotate(method))
          for method in both],
    ]


DATA_AND_TENSOR = [
    Rung("1 rank, accumulation 4", accumulate=4),
    Rung("DDP 2", replicate=2),
    Rung("DDP 4", replicate=4),
    Rung("DDP 2, accumulation 2", replicate=2, accumulate=2),
    Rung("FSDP 2", shard=2),
    Rung("FSDP 4", shard=4),
    Rung("FSDP 2, reshard never", shard=2, more=reshard("never")),
    Rung("FSDP 2, reshard always", shard=2, more=reshard("always")),
    Rung("FSDP 2, accumulation 2", shard=2, accumulate=2),
    Rung("FSDP 2, accumulation 2, summed each time", shard=2, accumulate=2,
         more={"parallelism.fsdp.sum_each_microbatch": None}),
    Rung("FSDP 2, offload", shard=2, more={"training.enable_cpu_offload": None}),
    Rung("HSDP 2x2", replicate=2, shard=2),
    Rung("HSDP 2x2, accumulation 2", replicate=2, shard=2, accumulate=2),
    *tensor_rungs(2),
    *tensor_rungs(4),
    Rung("FSDP 2 x TP 2", shard=2, tensor=2),
    Rung("FSDP 2 x TP 2, accumulation 2", shard=2, tensor=2, accumulate=2),
    Rung("FSDP 2 x TP 2, async", shard=2, tensor=2, more=ASYNC),
    Rung("DDP 2 x TP 2", replicate=2, tensor=2),
]
PIPELINE = [
    *schedule_rungs(2),
    *schedule_rungs(4),
    Rung("PP 2, accumulation 2", pipeline=2, accumulate=2),
    Rung("PP 2, ZBVZeroBubble, accumulation 2", pipeline=2, accumulate=2, more=schedule("ZBVZeroBubble")),
    Rung("PP 2, microbatches of 2", pipeline=2, more={"parallelism.pipeline_parallel_microbatch_size": 2}),
    Rung("PP 2, modules named", pipeline=2, more={
        "parallelism.module_fqns_per_model_part": ["tok_embeddings,layers.0,layers.1", "norm,output"]}),
    Rung("PP 2, Interleaved1F1B, 1 layer per stage", pipeline=2, layers=DEEP, more={
        "parallelism.pipeline_parallel_layers_per_stage": 1, **schedule("Interleaved1F1B")}),
    Rung("PP 2 x FSDP 2", pipeline=2, shard=2),
    Rung("PP 2 x FSDP 2, reshard always", pipeline=2, shard=2, more=reshard("always")),
    Rung("PP 2 x FSDP 2, InterleavedZeroBubble", pipeline=2, shard=2, more=schedule("InterleavedZeroBubble")),
    Rung("PP 2 x FSDP 2, ZBVZeroBubble, accumulation 2", pipeline=2, shard=2, accumulate=2,
         more=schedule("ZBVZeroBubble")),
    Rung("PP 2 x DDP 2", pipeline=2, replicate=2),
    Rung("PP 2 x DDP 2, DualPipeV", pipeline=2, replicate=2, more=schedule("DualPipeV")),
    Rung("PP 2 x TP 2", pipeline=2, tensor=2),
    Rung("PP 2 x TP 2, InterleavedZeroBubble, async", pipeline=2, tensor=2,
         more={**schedule("InterleavedZeroBubble"), **ASYNC}),
    Rung("PP 2 x FSDP 2 x TP 2", pipeline=2, shard=2, tensor=2),
]
CONTEXT = [
    *context_rungs(2),
    *context_rungs(4),
    Rung("CP 2, accumulation 2", context=2, accumulate=2),
    Rung("CP 2 x DDP 2", context=2, replicate=2),
    Rung("CP 2 x FSDP 2", context=2, shard=2),
    Rung("CP 2 x FSDP 2, alltoall, accumulation 2", context=2, shard=2, accumulate=2, more=rotate("alltoall")),
    Rung("CP 2 x TP 2", context=2, tensor=2),
    Rung("CP 2 x TP 2, alltoall, sequence parallel off", context=2, tensor=2,
         more={**rotate("alltoall"), **NO_SEQUENCE_PARALLEL}),
    Rung("HSDP 2x2 x CP 2", replicate=2, shard=2, context=2),
    Rung("PP 2 x CP 2", pipeline=2, context=2),
    Rung("PP 2 x CP 2, ZBVZeroBubble, alltoall", pipeline=2, context=2,
         more={**schedule("ZBVZeroBubble"), **rotate("alltoall")}),
    Rung("PP 2 x CP 2 x TP 2", pipeline=2, context=2, tensor=2),
    *document_rungs(),
    Rung("PP 2 x FSDP 2 x CP 2 x TP 2", pipeline=2, shard=2, context=2, tensor=2, models=("plain",), is_long=True),
]
# each parallelism with fused layers, compared with one rank without fused layers
COMPILE = {"compile.enable": None}
COMPILED = [
    Rung("FSDP 2, compile", shard=2, more=COMPILE, models=("plain", "uneven")),
    Rung("TP 2, compile", tensor=2, more=COMPILE, models=("plain", "uneven")),
    Rung("PP 2, InterleavedZeroBubble, compile", pipeline=2, models=("plain",), more={**schedule("InterleavedZeroBubble"), **COMPILE}),
    Rung("CP 2 x FSDP 2, compile", context=2, shard=2, more=COMPILE, models=("plain",)),
]
# a model whose heads share norm weights: ranks of tensor parallelism have only partial gradients of
# them
HEAD_NORMS = [dataclasses.replace(rung, name=f"qwen3: {rung.name}", models=("qwen3",)) for rung in (
    Rung("DDP 2, accumulation 2", replicate=2, accumulate=2),
    Rung("FSDP 2", shard=2),
    *tensor_rungs(2)[::2],
    Rung("TP 4", tensor=4),
    Rung("FSDP 2 x TP 2", shard=2, tensor=2),
    Rung("PP 2, ZBVZeroBubble", pipeline=2, more=schedule("ZBVZeroBubble")),
    Rung("PP 2 x TP 2", pipeline=2, tensor=2),
    Rung("CP 2, alltoall, documents", context=2, documents=True, more=rotate("alltoall")),
    Rung("CP 2 x TP 2", context=2, tensor=2),
    Rung("TP 2, compile", tensor=2, more=COMPILE),
)]
RECOMPUTED = {"activation_checkpoint.mode": "full"}
SELECTIVE = {"activation_checkpoint.mode": "selective", "activation_checkpoint.selective_ac_option": "op"}
# layouts that the tests of each model run in addition (tests/end_to_end)
FEW = ("EP 2, FSDP 4", "EP 4, FSDP 2 x TP 2", "EP 2, CP 2, alltoall, FSDP 2", "EP 2, PP 2 x FSDP 2, DualPipeV",
       "EP 2, experts cut, FSDP 2 x TP 2")
EXPERTS = [dataclasses.replace(rung, models=WITH_EXPERTS, is_exact=True, is_long=rung.name not in FEW) for rung in (
    Rung("experts: DDP 2, accumulation 2", replicate=2, accumulate=2),
    Rung("experts: PP 2, ZBVZeroBubble", pipeline=2, more=schedule("ZBVZeroBubble")),
    Rung("experts: CP 2, alltoall, documents", context=2, documents=True, more=rotate("alltoall")),
    Rung("EP 2, FSDP 2", shard=2, experts=2),
    Rung("EP 4, FSDP 4", shard=4, experts=4),
    Rung("EP 2, FSDP 4", shard=4, experts=2),
    Rung("EP 2, HSDP 2x2", replicate=2, shard=2, experts=2),
    Rung("EP 2, TP 2", tensor=2, experts=2),
    Rung("EP 4, FSDP 2 x TP 2", shard=2, tensor=2, experts=4),
    Rung("EP 2, CP 2", context=2, experts=2),
    Rung("EP 2, CP 2, alltoall, FSDP 2", context=2, shard=2, experts=2, more=rotate("alltoall")),
    Rung("EP 2, PP 2 x FSDP 2", pipeline=2, shard=2, experts=2),
    Rung("EP 2, PP 2 x FSDP 2, DualPipeV", pipeline=2, shard=2, experts=2, more=schedule("DualPipeV")),
    Rung("EP 2, FSDP 2, recomputed", shard=2, experts=2, more=RECOMPUTED),
    Rung("EP 2, FSDP 2, recomputed by op", shard=2, experts=2, accumulate=2, more=SELECTIVE),
    Rung("experts cut, TP 2", tensor=2, expert_tensor=2),
    Rung("EP 2, experts cut, FSDP 2 x TP 2", shard=2, tensor=2, experts=2, expert_tensor=2),
)]
WITHIN_EXPERTS = [dataclasses.replace(rung, models=("two_experts",), is_exact=True, is_long=rung.experts == 1) for rung in (
    Rung("experts: FSDP 4 of two", shard=4),
    Rung("EP 2, FSDP 4 of two", shard=4, experts=2),
)]
RUNGS = [*DATA_AND_TENSOR, *PIPELINE, *CONTEXT, *COMPILED, *HEAD_NORMS, *EXPERTS, *WITHIN_EXPERTS]
