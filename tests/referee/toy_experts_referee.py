"""Compares experiments/toy_experts with torch and transformers: loss, auxiliary loss and all gradients of one step.

    toy_experts_referee.py --before <checkpoint> --after <checkpoint> --tokens <uint16 file> --rows N --loss L --auxiliary A
                           --experts E --top-k K --coefficient C

The step is one of plain gradient descent with a learning rate of 1, so gradients are the difference of the weights.
Embedding, attention and head are transformers' Llama. This script computes all experts for every token, without
dispatch, and adds them by their weights. Both sum the main loss over tokens.
"""

import argparse
import pathlib

import before_transformers

import numpy
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy, one_hot, silu
from transformers import LlamaConfig, LlamaForCausalLM

import titan_referee as titan

TOLERANCE = 1e-5  # transformers normalises in float32
THEIRS = {"tok_embeddings": "model.embed_tokens", "norm": "model.norm", "output": "lm_head", "attention.wq": "self_attn.q_proj",
          "attention.wk": "self_attn.k_proj", "attention.wv": "self_attn.v_proj", "attention.wo": "self_attn.o_proj",
          "attention_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}


class Experts(torch.nn.Module):
    """Every expert for every token."""

    def __init__(self, weights, prefix, args):
        super().__init__()
        for name in ("gate.weight", "w1", "w2"):
            self.register_parameter(name.replace(".", "_"), torch.nn.Parameter(weights[f"{prefix}.{name}"].clone()))
        self.bias, self.args, self.auxiliary = weights[f"{prefix}.bias"].double(), args, None

    def forward(self, x):
        scores = torch.sigmoid(x @ self.gate_weight.T)
        chosen = torch.topk(scores + self.bias, self.args.top_k, dim=-1).indices
        mask = one_hot(chosen, self.args.experts).sum(-2).double()
        weights = scores * mask
        weights = weights / weights.sum(-1, keepdim=True)
        hidden = silu(torch.einsum("bsd,efd->bsef", x, self.w1))
        done = torch.einsum("bsef,edf->bsed", hidden, self.w2)
        share = (scores / scores.sum(-1, keepdim=True)).mean(1)
        load = mask.mean(1) * self.args.experts / self.args.top_k
        self.auxiliary = self.args.coefficient * x.shape[1] * (share * load).sum()
        return (done * weights.unsqueeze(-1)).sum(2)


def their_name(name):
    """The tensor of the referee's model for one of Titan's parameters."""
    name = name.removesuffix(".weight") if "gate.weight" not in name else name
    if not name.startswith("layers."):
        return THEIRS[name] + ".weight"
    _, number, rest = name.split(".", 2)
    if rest.startswith("feed_forward."):
        return f"model.layers.{number}.mlp.{rest.removeprefix('feed_forward.').replace('.', '_')}"
    return f"model.layers.{number}.{THEIRS[rest]}.weight"


def weights_in(folder):
    """Tensors by name, from checkpoints that one rank has written."""
    found = {}
    for path in sorted(folder.glob("weights*.safetensors")):
        found |= load_file(path)
    return found


def build(weights, args):
    dim = weights["norm.weight"].shape[0]
    num_layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))
    config = LlamaConfig(
        hidden_size=dim, intermediate_size=dim, num_hidden_layers=num_layers, num_attention_heads=args.heads,
        num_key_value_heads=args.heads, vocab_size=weights["output.weight"].shape[0], rms_norm_eps=1e-5,
        max_position_embeddings=131072, tie_word_embeddings=False, attn_implementation="eager",
        rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})
    model = LlamaForCausalLM(config).double().eval()
    for number, layer in enumerate(model.model.layers):
        layer.mlp = Experts(weights, f"layers.{number}.feed_forward", args)
    named = dict(model.named_parameters())
    with torch.no_grad():
        for name, value in weights.items():
            if not name.endswith(".bias"):
                named.pop(their_name(name)).copy_(value)
    assert not named, f"left out: {sorted(named)}"
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, kind in (("before", pathlib.Path), ("after", pathlib.Path), ("tokens", pathlib.Path), ("rows", int), ("heads", int),
                       ("loss", float), ("auxiliary", float), ("experts", int), ("top-k", int), ("coefficient", float)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    args = parser.parse_args()
    before, after = weights_in(args.before), weights_in(args.after)
    model = build(before, args)
    windows = torch.from_numpy(numpy.fromfile(args.tokens, dtype="<u2").astype(numpy.int64)).view(args.rows, -1)
    tokens, labels = windows[:, :-1], windows[:, 1:]
    loss = cross_entropy(model(tokens, use_cache=False).logits.flatten(0, 1), labels.flatten())
    auxiliary = sum(layer.mlp.auxiliary for layer in model.model.layers) / tokens.numel()
    (loss + auxiliary).backward()

    report = titan.Report()
    report.at_most("loss, relative", abs(args.loss / loss.item() - 1), TOLERANCE)
    report.at_most("auxiliary loss, relative", abs(args.auxiliary / auxiliary.item() - 1), TOLERANCE)
    parameters = dict(model.named_parameters())
    for name, value in before.items():
        if name.endswith(".bias"):
            continue
        gradient = parameters[their_name(name)].grad
        report.at_most(f"gradient of {name}, relative", titan.relative(value - after[name], gradient), TOLERANCE)
        report.at_least(f"gradient of {name}, norm", gradient.norm().item(), 1e-9)
    without = torch.autograd.grad(loss_alone(model, tokens, labels), model.model.layers[0].mlp.gate_weight)[0]
    report.at_least("control: the gate's gradient without the auxiliary loss, relative",
                    titan.relative(without, model.model.layers[0].mlp.gate_weight.grad), 10 * TOLERANCE)
    report.finish()


def loss_alone(model, tokens, labels):
    return cross_entropy(model(tokens, use_cache=False).logits.flatten(0, 1), labels.flatten())


if __name__ == "__main__":
    main()
