"""Golden values of tests/plugins/losses/dpo_test.cpp: losses of pairs computed by TRL's own code, with gradients by
torch.

    pip download --no-deps trl==0.19.1
    dpo_referee.py trl-0.19.1-py3-none-any.whl

DPOTrainer.dpo_loss is extracted unchanged from the wheel, because importing the package needs a trainer's whole
environment. The step before it in TRL (sums over the tokens of an answer; for ipo means) is one line here, as in
DPOTrainer.concatenated_forward. Prints rows for kGolden: variant, beta, label_smoothing, reference_free, the sum of the
losses of all pairs, those of the chosen and the rejected rewards, and the gradient at a token of each answer.
"""

import ast
import enum
import pathlib
import sys
import types
import zipfile

import torch

SEQ_LEN, PROMPT = 24, 2
LENGTHS = ((5, 7, 6, 4), (8, 6))  # lengths of the documents of each row; the rest is padding


def trl_loss(wheel):
    source = zipfile.ZipFile(wheel).read("trl/trainer/dpo_trainer.py").decode()
    method = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == "dpo_loss")
    divergences = enum.Enum("FDivergenceType", {"REVERSE_KL": "reverse_kl", "JS_DIVERGENCE": "js_divergence",
                                                "ALPHA_DIVERGENCE": "alpha_divergence"})
    names = {"torch": torch, "F": torch.nn.functional, "FDivergenceType": divergences}
    exec(compile(ast.Module([method], []), str(wheel), "exec"), names)
    return names["dpo_loss"]


def documents():
    """(first trained token, one past the last) of each document in order, in the flattened batch."""
    for row, lengths in enumerate(LENGTHS):
        first = row * SEQ_LEN
        for length in lengths:
            yield first + PROMPT, first + length
            first += length


def sums(values, takes_means):
    found = [values[first:last] for first, last in documents()]
    return torch.stack([part.mean() if takes_means else part.sum() for part in found])


def main():
    loss_of = trl_loss(pathlib.Path(sys.argv[1]))
    index = torch.arange(len(LENGTHS) * SEQ_LEN, dtype=torch.float64)
    for variant, beta, smoothing, free in (("sigmoid", 0.1, 0.0, False), ("sigmoid", 0.5, 0.2, False), ("sigmoid", 0.3, 0.0, True),
                                           ("ipo", 0.1, 0.0, False), ("ipo", 0.7, 0.0, True), ("hinge", 0.4, 0.0, False)):
        policy = (-1.2 - torch.sin(0.731 * index)).requires_grad_()
        reference = -1.2 - torch.cos(0.317 * index)
        own, theirs = (sums(values, variant == "ipo") for values in (policy, reference))
        trainer = types.SimpleNamespace(accelerator=types.SimpleNamespace(device="cpu"), f_divergence_type="reverse_kl", loss_type=variant,
                                        beta=beta, label_smoothing=smoothing, reference_free=free)
        losses, chosen, rejected = loss_of(trainer, own[0::2], own[1::2], theirs[0::2], theirs[1::2])
        if free:  # TRL's rewards are always relative to the reference; Titan's are relative to the loss's reference
            chosen, rejected = beta * own[0::2], beta * own[1::2]
        losses.sum().backward()
        gradients = ", ".join(f"{policy.grad[first].item():.15g}" for first, _ in documents())
        print(f'    {{"{variant}", {beta}, {smoothing}, {str(free).lower()}, {losses.sum().item():.15g}, {chosen.sum().item():.15g}, '
              f"{rejected.sum().item():.15g}, {{{gradients}}}}},")


if __name__ == "__main__":
    main()
