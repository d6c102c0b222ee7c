"""Compares the AdamW, Adam and SGD plugins with torch.optim.

    adamw_referee.py --probe <llama_probe> --plugins <folder>

Ten training steps of a tiny Llama with clipping and a changing learning rate, compared with transformers +
torch.optim.AdamW; then a hundred steps of every optimizer and implementation on random gradients.
"""

import pathlib
import tempfile

import before_transformers

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import titan_referee as titan

VOCAB, ROWS, SEQ_LEN = 128, 2, 64
OPTIONS = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": VOCAB, "multiple_of": 32,
           "rope_scaling": {"scaling_factor": 8.0}}


def train(args, report, folder, what, changed_options, max_norm):
    steps = 10
    generator = torch.Generator().manual_seed(5)
    # few distinct ids, so that the loss falls quickly
    tokens = torch.randint(16, (steps, ROWS, SEQ_LEN), generator=generator)
    labels = tokens.roll(-1, dims=2)
    labels[..., -1] = -100
    labels[torch.rand(labels.shape, generator=generator) < 0.2] = -100
    lr_factors = [0.5, 1, 1] + [1 - 0.1 * i for i in range(1, 8)]
    job = {"model": "llama3", "seq_len": SEQ_LEN, "seed": 11, "options": OPTIONS | changed_options, "batches": steps,
           "rows": ROWS, "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels),
           "optimizer": {"name": "AdamW", "steps": steps, "max_norm": max_norm, "lr_factors": lr_factors,
                         "options": {"lr": 8e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}}}
    run = titan.Run(args, job, folder / "ours")

    config = LlamaConfig.from_dict(run.result["hf_config"] | {"attn_implementation": "eager"})
    model = LlamaForCausalLM(config).float()
    parameters = dict(model.named_parameters())
    start = run.tensors("parameters")
    report.equal(f"{what}: names", sorted(run.their_name[name] for name in start), sorted(parameters))
    with torch.no_grad():
        for name, tensor in start.items():
            parameters[run.their_name[name]].copy_(tensor)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1,
                                  fused=False, foreach=False)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: lr_factors[min(n, steps - 1)])
    losses, norms = [], []
    for step in range(steps):
        logits = model(tokens[step], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[step].flatten())
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm).item())
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())

    for step, (found, expected) in enumerate(zip(run.result["losses"], losses, strict=True)):
        report.at_most(f"{what}: loss of step {step + 1} ({expected:.5f})", abs(found - expected), 1e-5)
    worst = max(abs(found / expected - 1) for found, expected in zip(run.result["norms"], norms, strict=True))
    report.at_most(f"{what}: gradient norms, worst relative", worst, 1e-5)
    report.at_least(f"{what}: first norm over the limit of clipping", norms[0] / max_norm, 0.1)
    final = run.tensors("final")
    changes = {name: titan.relative(final[name] - start[name],
                                    parameters[run.their_name[name]].detach() - start[name]) for name in final}
    report.at_most(f"{what}: change of weights, worst relative", max(changes.values()), 1e-3)
    report.at_most(f"{what}: weights, worst relative",
                   max(titan.relative(final[name], parameters[run.their_name[name]].detach()) for name in final), 1e-5)


ADAM = {"lr": 1e-2, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
SGD = {"lr": 1e-2, "momentum": 0.0, "weight_decay": 0.0, "nesterov": False}
OPTIMIZERS = [  # plugin, torch class, torch's options, implementation
    *[("AdamW", torch.optim.AdamW, ADAM, i) for i in ("for-loop", "foreach", "fused")],
    *[("Adam", torch.optim.Adam, ADAM, i) for i in ("for-loop", "foreach", "fused")],
    *[("AdamW", torch.optim.AdamW, ADAM | {"weight_decay": 0.0, "betas": (0.8, 0.999), "eps": 1e-3}, i)
      for i in ("for-loop", "foreach", "fused")],
    *[("SGD", torch.optim.SGD, SGD | changed, None) for changed in
      ({}, {"weight_decay": 0.1}, {"momentum": 0.9}, {"momentum": 0.9, "weight_decay": 0.1},
       {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True})],
]


def take_steps(make_optimizer, start, gradients, lr_factors):
    """The weights after one step of torch's optimizer on each gradient."""
    parameters = {name: torch.nn.Parameter(tensor.clone()) for name, tensor in start.items()}
    optimizer = make_optimizer(parameters.values())
    base_lr = optimizer.param_groups[0]["lr"]
    for step, lr_factor in enumerate(lr_factors):
        optimizer.param_groups[0]["lr"] = base_lr * lr_factor
        for name, parameter in parameters.items():
            parameter.grad = gradients[name][step].clone()
        optimizer.step()
    return {name: parameter.detach() for name, parameter in parameters.items()}


def replay(args, report, folder):
    steps = 100
    small = {"dim": 16, "n_layers": 1, "n_heads": 2, "vocab_size": 32, "multiple_of": 8}
    job = {"model": "llama3", "seq_len": 8, "seed": 1, "options": small}
    start = titan.Run(args, job, folder / "start").tensors("parameters")
    generator = torch.Generator().manual_seed(9)
    gradients = {}
    for name, tensor in start.items():  # of very different sizes, some exactly zero
        scale = 10.0 ** torch.randint(-6, 3, (1, *tensor.shape), generator=generator)
        gradient = torch.randn((steps, *tensor.shape), generator=generator) * scale
        gradient[torch.rand(gradient.shape, generator=generator) < 0.05] = 0
        gradients[name] = gradient
        titan.write_tensor(folder / "gradients" / f"{name}.bin", gradient)
    lr_factors = [min(1.0, (n + 1) / 10) for n in range(steps)]

    for number, (plugin, optimizer_class, options, implementation) in enumerate(OPTIMIZERS):
        ours = {key: value for key, value in options.items() if key != "betas"}
        what = plugin + "".join(f" {key}={value}" for key, value in options.items())
        if "betas" in options:
            ours |= {"beta1": options["betas"][0], "beta2": options["betas"][1], "implementation": implementation}
            what += f" {implementation}"
        run = titan.Run(args, job | {"gradients": str(folder / "gradients"), "optimizer": {
            "name": plugin, "options": ours, "steps": steps, "lr_factors": lr_factors}}, folder / str(number))
        found = run.tensors("final")
        expected = take_steps(lambda p: optimizer_class(p, **options, fused=False, foreach=False), start, gradients,
                              lr_factors)
        report.at_most(f"{what}: worst relative", max(titan.relative(found[n], expected[n]) for n in start), 1e-6)
        moved = min(titan.relative(expected[n], start[n]) for n in start)
        report.at_least(f"{what}: the weights moved by", moved, 1e-3)
        if implementation == "fused":  # rounds differently than the loop: single elements are compared with torch's fused kernel
            expected = take_steps(lambda p: optimizer_class(p, **options, fused=True), start, gradients, lr_factors)
        worst = max(titan.max_abs(found[n], expected[n]) / expected[n].abs().max().item() for n in start)
        report.at_most(f"{what}: max abs over largest weight", worst, 1e-6)


def main():
    args = titan.arguments(__doc__.splitlines()[0])
    report = titan.Report()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        train(args, report, folder / "untied", "untied, clipped", {}, max_norm=1.0)
        train(args, report, folder / "tied", "tied, clipped hard", {"enable_weight_tying": True}, max_norm=0.05)
        replay(args, report, folder / "replay")
    report.finish()


if __name__ == "__main__":
    main()
