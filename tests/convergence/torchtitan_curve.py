"""Prints a loss curve of torchtitan v0.2.2, from given weights on given texts. convergence.py runs it with a Python
that has torchtitan.

    python torchtitan_curve.py JOB.json    # prints {"losses": [...], "norms": [...]}

Uses torchtitan's own model, converter of Hugging Face weights, optimizer, schedule, clipping, loss and, for bf16,
sharding with mixed precision over a group of one. torchtitan's trainer needs a GPU, so this script has the loop. It
makes the tokens from the texts with the tokenizers library, by the rules of docs/guides/data.md.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torchtitan.components.loss import cross_entropy_loss
from torchtitan.components.lr_scheduler import build_lr_schedulers
from torchtitan.components.optimizer import OptimizersContainer
from torchtitan.config.job_config import LRScheduler
from torchtitan.models.llama3 import Transformer, TransformerModelArgs
from torchtitan.models.llama3.infra.parallelize import apply_fsdp
from torchtitan.models.llama3.model.state_dict_adapter import Llama3StateDictAdapter


def windows(path, tokenizer, rows, seq_len):
    """Batches of `rows` sequences of seq_len + 1 tokens: document g belongs to row g mod rows, BOS and EOS around
    each."""
    tokenizer = Tokenizer.from_file(tokenizer)
    end = tokenizer.token_to_id("<|end_of_text|>")
    streams = [[] for _ in range(rows)]
    texts = [json.loads(line)["text"] for line in open(path)]
    number = 0
    while True:
        while min(map(len, streams)) < seq_len + 1:
            streams[number % rows] += tokenizer.encode(texts[number % len(texts)]).ids + [end]
            number += 1
        yield torch.tensor([stream[:seq_len + 1] for stream in streams])
        streams = [stream[seq_len + 1:] for stream in streams]


def build(job):
    dim, layers, heads = job["shape"]
    arguments = TransformerModelArgs(dim=dim, n_layers=layers, n_heads=heads, vocab_size=2048, rope_theta=500000,
                                     max_seq_len=job["seq_len"])
    model = Transformer(arguments)
    with torch.no_grad():
        model.init_weights()  # for the rotary table; all weights come from the file
    weights = Llama3StateDictAdapter(arguments, None).from_hf(load_file(job["weights"]))
    missing = model.load_state_dict(weights, strict=False)
    assert not missing.unexpected_keys and all(key == "freqs_cis" for key in missing.missing_keys), missing
    if job["numbers"] == "bf16":
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        mesh = dist.init_device_mesh("cpu", (1,), mesh_dim_names=("fsdp",))
        apply_fsdp(model, mesh, param_dtype=torch.bfloat16, reduce_dtype=torch.float32, pp_enabled=False)
    return model


def main():
    job = json.load(open(sys.argv[1]))
    torch.set_num_threads(1)
    model = build(job)
    optimizers = OptimizersContainer([model], torch.optim.AdamW,
                                     {"lr": job["lr"], "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1, "fused": True})
    schedule = build_lr_schedulers(optimizers, LRScheduler(warmup_steps=job["warmup"], decay_ratio=0.8, decay_type="linear",
                                                           min_lr_factor=0.1), job["steps"])
    batches = windows(job["texts"], job["tokenizer"], job["rows"], job["seq_len"])
    losses, norms = [], []
    for _ in range(job["steps"]):
        batch = next(batches)
        optimizers.zero_grad()
        loss = cross_entropy_loss(model(batch[:, :-1]), batch[:, 1:]) / batch[:, 1:].numel()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizers.step()
        schedule.step()
        losses.append(loss.item())
        norms.append(float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm))
    print(json.dumps({"losses": losses, "norms": norms}))
    sys.stdout.flush()
    os._exit(0)  # a group of one needs no shutdown


if __name__ == "__main__":
    main()
