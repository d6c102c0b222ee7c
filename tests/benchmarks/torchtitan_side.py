"""Trains a Llama in torchtitan v0.2.2's own code on CPUs and prints its speed for titan bench --against (docs/guides/bench.md).

    bench/bin/python tests/benchmarks/torchtitan_side.py --model debug|100m [--dtype bfloat16] [--layout fsdp|tp|pp|cp]
        [--ranks 2] [--compile] [--batch 2] [--threads 2]

torchtitan's trainer needs a GPU, so this script calls its parts as that trainer does: model, cross_entropy_loss, clip_grad_norm_,
fused AdamW, and for several ranks apply_fsdp, apply_tp, pipeline_module_split with build_pipeline_schedule, and
apply_cp_to_attention_module within FSDP, on gloo. (cp: in torch 2.11 and 2.15 the CPU's attention has no sharding strategy, so it ends with
that error until that changes.) In bfloat16 one rank computes under autocast and FSDP casts, as in the trainer. Tokens are
random. Steps are TITAN_BENCH_WARMUP + TITAN_BENCH_STEPS.
"""

import argparse
import contextlib
import json
import logging
import os
import resource
import subprocess
import socket
import sys
import time
import warnings

MODELS = {
    # name: arguments of the model, tokens of a sequence
    "debug": (dict(dim=256, n_layers=6, n_heads=16, vocab_size=2048, rope_theta=500000), 2048),
    "100m": (dict(dim=768, n_layers=12, n_heads=12, vocab_size=32000, rope_theta=500000), 1024),
}


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="debug")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--layout", choices=["none", "fsdp", "tp", "pp", "cp"], default="none")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--batch", type=int, default=2, help="sequences of all ranks in a step")
    parser.add_argument("--seq-len", type=int, help="tokens per sequence (default: the model's)")
    parser.add_argument("--threads", type=int, default=2, help="of all ranks")
    parser.add_argument("--compile", action="store_true", help="torch.compile each block and the loss, as [compile] does there")
    return parser.parse_args()


def start_ranks(ranks, threads):
    """Starts this script once per rank; exits with the code of one that failed."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    processes = []
    for rank in range(ranks):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                           OMP_NUM_THREADS=str(max(1, threads // ranks)))
        processes.append(subprocess.Popen([sys.executable, *sys.argv], env=environment))
    codes = [process.wait() for process in processes]
    sys.exit(next((code for code in codes if code), 0))


class Training:
    """The model under its layout, and one step of torchtitan's trainer."""

    def __init__(self, arguments):
        import torch
        from torchtitan.components.loss import cross_entropy_loss
        from torchtitan.models.llama3 import TransformerModelArgs
        from torchtitan.models.llama3.model.model import Transformer
        self.torch, self.arguments = torch, arguments
        options, default_length = MODELS[arguments.model]
        self.seq_len = arguments.seq_len or default_length
        self.vocabulary = options["vocab_size"]
        self.loss = torch.compile(cross_entropy_loss) if arguments.compile else cross_entropy_loss
        self.mesh = self.pp_mesh = self.schedule = None
        if arguments.layout != "none":
            torch.distributed.init_process_group("gloo")
            self.mesh = torch.distributed.init_device_mesh("cpu", (arguments.ranks,), mesh_dim_names=(arguments.layout,))
        # a pipeline copies the model, which torch also does on meta
        with torch.device("meta"):
            self.model = Transformer(TransformerModelArgs(**options, max_seq_len=self.seq_len))
        getattr(self, f"lay_out_{arguments.layout}")()
        self.model.to_empty(device="cpu")
        with torch.no_grad():
            self.model.init_weights()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=8e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def compile_blocks(self):
        if not self.arguments.compile:
            return
        from torchtitan.config.job_config import Compile
        from torchtitan.models.llama3.infra.parallelize import apply_compile
        apply_compile(self.model, Compile(enable=True))

    def lay_out_none(self):
        self.compile_blocks()

    def lay_out_fsdp(self):
        from torchtitan.models.llama3.infra.parallelize import apply_fsdp
        self.compile_blocks()
        dtype = getattr(self.torch, self.arguments.dtype)
        apply_fsdp(self.model, self.mesh, param_dtype=dtype, reduce_dtype=self.torch.float32, pp_enabled=False)
        for module in self.model.modules():
            if isinstance(module, self.torch.distributed.fsdp.FSDPModule):
                module.set_force_sum_reduction_for_comms(True)  # gloo does not support a sum with a factor, which is 1 here

    def lay_out_tp(self):
        from torchtitan.models.llama3.infra.parallelize import apply_tp
        apply_tp(self.model, self.mesh, loss_parallel=True, enable_float8_tensorwise_tp=False)
        self.compile_blocks()

    def lay_out_cp(self):
        from torchtitan.distributed.context_parallel import apply_cp_to_attention_module
        apply_cp_to_attention_module([block.attention.inner_attention for block in self.model.layers.values()], self.mesh, "sdpa")
        self.lay_out_fsdp()  # its ranks are FSDP's too

    def lay_out_pp(self):
        from torchtitan.config import JobConfig
        from torchtitan.distributed.pipeline_parallel import (build_pipeline_schedule, generate_llm_fqn_per_model_part,
                                                              pipeline_module_split)
        config = JobConfig()
        config.parallelism.pipeline_parallel_schedule = "1F1B"
        config.parallelism.pipeline_parallel_degree = self.arguments.ranks
        config.parallelism.pipeline_parallel_microbatch_size = 1
        config.training.local_batch_size = self.arguments.batch
        names = generate_llm_fqn_per_model_part(self.arguments.ranks, MODELS[self.arguments.model][0]["n_layers"])
        stages, parts = pipeline_module_split(self.model, self.mesh, "1F1B", self.torch.device("cpu"), names)
        self.model, self.pp_mesh = parts[0], self.mesh
        self.compile_blocks()
        stages[0].submod = self.model
        self.stage = stages[0]
        tokens = self.arguments.batch * self.seq_len
        self.schedule = build_pipeline_schedule(config, stages, lambda logits, labels: self.loss(logits, labels) / tokens)

    def contexts(self):
        """The contexts in which the trainer computes."""
        stack = contextlib.ExitStack()
        if self.arguments.layout == "tp":
            stack.enter_context(self.torch.distributed.tensor.parallel.loss_parallel())
        if self.arguments.dtype == "bfloat16" and self.arguments.layout == "none":
            stack.enter_context(self.torch.autocast("cpu", dtype=self.torch.bfloat16))
        return stack

    def step(self, tokens):
        """`tokens`: (sequences of all ranks, seq_len + 1), the same on every rank."""
        from torchtitan.distributed.utils import clip_grad_norm_
        self.optimizer.zero_grad()
        count = tokens[:, 1:].numel()
        if self.arguments.layout == "fsdp":
            tokens = tokens.chunk(self.arguments.ranks)[self.mesh.get_local_rank()]
        inputs, labels, more = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), {}
        if self.arguments.layout == "cp":
            from torchtitan.distributed.context_parallel import prepare_context_parallel_input
            inputs, labels, more = prepare_context_parallel_input(inputs, labels, {}, self.mesh, self.torch.device("cpu"))
        with self.contexts():
            if self.schedule:
                targets, losses = (labels, []) if self.stage.is_last else (None, None)
                self.schedule.step(*([inputs] if self.stage.is_first else []), target=targets, losses=losses)
            else:
                (self.loss(self.model(inputs, **more), labels) / count).backward()
        clip_grad_norm_(self.model.parameters(), 1.0, foreach=True, pp_mesh=self.pp_mesh)
        self.optimizer.step()


def peak_bytes(training):
    """Peak bytes of the rank with most."""
    peak = training.torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024])
    if training.mesh:
        training.torch.distributed.all_reduce(peak, op=training.torch.distributed.ReduceOp.MAX)
    return int(peak)


def main():
    launched = time.time()
    arguments = parsed()
    if arguments.layout == "none" and arguments.ranks != 1 or arguments.layout != "none" and arguments.ranks < 2:
        sys.exit("--layout none has one rank, every other layout more: give --ranks")
    if arguments.ranks > 1 and "RANK" not in os.environ:
        start_ranks(arguments.ranks, arguments.threads)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import torch
    torch.set_num_threads(max(1, arguments.threads // arguments.ranks))
    torch.manual_seed(0)
    training = Training(arguments)
    is_first = int(os.environ.get("RANK", 0)) == 0
    warmup, steps = int(os.environ.get("TITAN_BENCH_WARMUP", 3)), int(os.environ.get("TITAN_BENCH_STEPS", 10))
    tokens = torch.randint(0, training.vocabulary, (arguments.batch, training.seq_len + 1))
    times, to_first_step = [], time.time() - launched
    for number in range(1, warmup + steps + 1):
        begin = time.perf_counter()
        training.step(tokens)
        times.append(time.perf_counter() - begin)
        if is_first:
            print(json.dumps({"step": number}), flush=True)
    measured = sorted(times[warmup:])
    median = (measured[(len(measured) - 1) // 2] + measured[len(measured) // 2]) / 2
    peak = peak_bytes(training)
    if is_first:
        per_step = arguments.batch * training.seq_len
        print(json.dumps({"tokens_per_second": per_step / median, "tokens_per_step": per_step, "step_seconds": times[warmup:],
                          "peak_bytes": peak, "to_first_step": to_first_step, "ranks": arguments.ranks,
                          "build": f"torchtitan 0.2.2, torch {torch.__version__}"}), flush=True)
    if training.mesh:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
