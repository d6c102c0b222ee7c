"""Compares the optimizer plugins with torch.optim on weights in float32 and bfloat16; Lion with a few lines of NumPy.

The weights include stacks of experts; Muon updates each expert separately.

    optimizer_referee.py --probe <optimizer_probe> --plugins <folder>

Fifty steps on random gradients of very different sizes, with a changing learning rate. Where torch runs the same
kernels the results are equal bit by bit.
"""

import json
import pathlib
import subprocess
import tempfile

import numpy as np
import torch

import titan_referee as titan

STEPS = 50
LR_FACTORS = [min(1.0, (n + 1) / 10) for n in range(STEPS)]
SHAPES = {"layers.0.wq.weight": (24, 40), "layers.0.w2.weight": (40, 24), "layers.0.wo.weight": (32, 32),
          "layers.1.w1.weight": (129, 17), "layers.0.norm.weight": (37,), "tok_embeddings.weight": (33, 24),
          "layers.0.moe.experts.w1": (5, 24, 40), "layers.0.moe.experts.w2": (3, 40, 24), "layers.0.moe.experts.w1_bias": (5, 24)}
STACKS = [name for name, shape in SHAPES.items() if len(shape) == 3]
MATRICES = [name for name, shape in SHAPES.items() if len(shape) == 2 and name.endswith(".weight") and name.startswith("layers")]

ADAM = {"lr": 1e-2, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
MUON = {"lr": 2e-2, "weight_decay": 0.1, "momentum": 0.95, "nesterov": True}
SGD = {"lr": 1e-2, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}


def made_up(folder):
    generator = torch.Generator().manual_seed(4)
    weights, gradients = {}, {}
    for name, shape in SHAPES.items():
        weights[name] = torch.randn(shape, generator=generator) * 0.5
        scale = 10.0 ** torch.randint(-6, 3, (1, *shape), generator=generator)
        gradient = torch.randn((STEPS, *shape), generator=generator) * scale
        gradient[torch.rand(gradient.shape, generator=generator) < 0.05] = 0
        gradients[name] = gradient
        titan.write_tensor(folder / "weights" / f"{name}.bin", weights[name])
        titan.write_tensor(folder / "gradients" / f"{name}.bin", gradient)
    return weights, gradients


def torch_steps(make_optimizers, weights, gradients, dtype):
    """The weights after a step of every optimizer on each gradient; `make_optimizers` gets the parameters by name."""
    parameters = {name: torch.nn.Parameter(tensor.to(dtype, copy=True)) for name, tensor in weights.items()}
    groups = [group for optimizer in make_optimizers(parameters) for group in [(optimizer, optimizer.param_groups[0])]]
    base = [group["lr"] for _, group in groups]
    for step, factor in enumerate(LR_FACTORS):
        for name, parameter in parameters.items():
            parameter.grad = gradients[name][step].to(dtype)
        for (optimizer, group), lr in zip(groups, base, strict=True):
            group["lr"] = lr * factor
            optimizer.step()
    return {name: parameter.detach().float() for name, parameter in parameters.items()}


def widened_adam_steps(weights, gradients, dtype, state_dtype):
    """torch's fused AdamW on float32 copies of weights, gradients and moments, which are rounded back after each step."""
    final = {}
    for name, start in weights.items():
        weight, exp_avg, exp_avg_sq = start.to(dtype, copy=True), torch.zeros(start.shape), torch.zeros(start.shape)
        count = torch.zeros(())
        for step, factor in enumerate(LR_FACTORS):
            wide = weight.float()
            torch._fused_adamw_([wide], [gradients[name][step].to(dtype).float()], [exp_avg], [exp_avg_sq], [],
                                [count.add_(1)], lr=ADAM["lr"] * factor, beta1=0.9, beta2=0.95, weight_decay=0.1,
                                eps=1e-8, amsgrad=False, maximize=False)
            weight = wide.to(dtype)
            exp_avg, exp_avg_sq = (m.to(state_dtype).float() for m in (exp_avg, exp_avg_sq))
        final[name] = weight.float()
    return final


def lion_steps(weights, gradients, lr, beta1, beta2, decay):
    final = {}
    for name, start in weights.items():
        weight, average = start.double().numpy(), np.zeros(start.shape)
        for gradient, factor in zip(gradients[name].double().numpy(), LR_FACTORS, strict=True):
            direction = np.sign(beta1 * average + (1 - beta1) * gradient)
            weight = weight * (1 - lr * factor * decay) - lr * factor * direction
            average = beta2 * average + (1 - beta2) * gradient
        final[name] = torch.from_numpy(weight)
    return final


def adam_options(implementation, **more):
    return {"lr": 1e-2, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1,
            "implementation": implementation} | more


def make_adam(kind, implementation):
    how = {"fused": implementation == "fused", "foreach": implementation == "foreach"}
    return lambda parameters: [kind(parameters.values(), **ADAM, **how)]


class MuonOfEach(torch.optim.Muon):
    """Runs on each matrix of some stacks separately; they share the stack's memory."""

    def __init__(self, stacks, **options):
        self.stacks = [(stack, [torch.nn.Parameter(matrix) for matrix in stack.data]) for stack in stacks]
        super().__init__([matrix for _, matrices in self.stacks for matrix in matrices], **options)

    def step(self):
        for stack, matrices in self.stacks:
            for matrix, gradient in zip(matrices, stack.grad, strict=True):
                matrix.grad = gradient
        super().step()


def make_muon(changed):
    """torch.optim.Muon supports only matrices: AdamW updates the rest, as in the plugin."""
    def make(parameters):
        options = MUON | changed
        rest = [parameter for name, parameter in parameters.items() if name not in MATRICES + STACKS]
        return [torch.optim.Muon([parameters[name] for name in MATRICES], **options),
                MuonOfEach([parameters[name] for name in STACKS], **options), torch.optim.AdamW(rest, **ADAM, fused=True)]
    return make


def muon_options(changed):
    ours = MUON | changed
    if "adjust_lr_fn" in ours:
        ours["adjust_lr"] = ours.pop("adjust_lr_fn")
    return ours | {"adamw_lr": 1e-2, "ns_dtype": "bfloat16"}


def cases(weights, gradients, dtype):
    """(case, plugin, options, expected weights, whether bitwise)"""
    run = lambda make: torch_steps(make, weights, gradients, dtype)  # noqa: E731
    for kind in (torch.optim.AdamW, torch.optim.Adam):
        for implementation in ("fused", "foreach", "for-loop"):
            yield (f"{kind.__name__} {implementation}", kind.__name__, adam_options(implementation),
                   run(make_adam(kind, implementation)), True)
    for state_dtype in ("bfloat16", "float32"):
        if getattr(torch, state_dtype) != dtype:
            yield (f"AdamW moments in {state_dtype}", "AdamW", adam_options("fused", state_dtype=state_dtype),
                   widened_adam_steps(weights, gradients, dtype, getattr(torch, state_dtype)), True)
    yield "SGD", "SGD", SGD, run(lambda parameters: [torch.optim.SGD(parameters.values(), **SGD, foreach=False)]), True
    for changed in ({}, {"nesterov": False, "ns_steps": 3}, {"adjust_lr_fn": "match_rms_adamw", "momentum": 0.8}):
        if dtype == torch.float32 or changed.get("nesterov", True):  # in that case torch.optim.Muon corrupts its own state
            yield f"Muon {changed}", "Muon", muon_options(changed), run(make_muon(changed)), True
    if dtype == torch.float32:
        yield ("Lion", "Lion", {"lr": 1e-2, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1},
               lion_steps(weights, gradients, 1e-2, 0.9, 0.99, 0.1), False)


def judge(args, report, folder, dtype):
    weights, gradients = made_up(folder)
    wanted = list(cases(weights, gradients, dtype))
    kind = str(dtype).removeprefix("torch.")
    job = {"dtype": kind, "steps": STEPS, "lr_factors": LR_FACTORS,
           "parameters": [{"name": name, "shape": shape} for name, shape in SHAPES.items()],
           "weights": str(folder / "weights"), "gradients": str(folder / "gradients"),
           "runs": [{"name": str(number), "optimizer": plugin, "options": options}
                    for number, (_, plugin, options, _, _) in enumerate(wanted)]}
    (folder / "job.json").write_text(json.dumps(job))
    subprocess.run([args.probe, "--plugins", args.plugins, "--job", str(folder / "job.json"), "--out",
                    str(folder / "out")], check=True)
    for number, (what, _, _, expected, is_bitwise) in enumerate(wanted):
        found = {name: titan.read_tensor(folder / "out" / str(number) / f"{name}.bin", shape)
                 for name, shape in SHAPES.items()}
        if is_bitwise:
            differ = sum((found[name] != expected[name]).sum().item() for name in SHAPES)
            report.at_most(f"{kind}, {what}: elements that differ", differ, 0)
        else:
            report.at_most(f"{kind}, {what}: worst relative",
                           max(titan.relative(found[name], expected[name]) for name in SHAPES), 1e-6)
        moved = min(titan.relative(expected[name], weights[name]) for name in SHAPES)
        report.at_least(f"{kind}, {what}: the weights moved by", moved, 1e-2)


def main():
    args = titan.arguments(__doc__.splitlines()[0])
    report = titan.Report()
    with tempfile.TemporaryDirectory() as temporary:
        for dtype in (torch.float32, torch.bfloat16):
            folder = pathlib.Path(temporary) / str(dtype)
            folder.mkdir()
            judge(args, report, folder, dtype)
    report.finish()


if __name__ == "__main__":
    main()
