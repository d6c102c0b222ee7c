"""Compares the exported config.json and the names of every built-in Llama with Hugging Face transformers.

    hf_flavors_referee.py --probe <llama_probe> --plugins <folder>

For each flavor: AutoConfig reads the exported config.json, the model that transformers makes of it on the meta device
has the parameters that the name rules promise, each with Titan's shape, and its settings are those of the published
models.
"""

import json
import pathlib
import tempfile

import before_transformers

import torch
from transformers import AutoConfig, AutoModelForCausalLM

import titan_referee as titan

# from the config.json files that the models were published with
SCALED_8 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192, "rope_theta": 500000.0}
SCALED_32 = SCALED_8 | {"factor": 32.0}
THETA_3 = {"rope_type": "default", "rope_theta": 500000.0}
THETA_2 = {"rope_type": "default", "rope_theta": 10000.0}
PUBLISHED = {  # (model, flavor): hidden, intermediate, layers, heads, kv heads, head_dim, vocab, tied, rope
    ("llama2", "7B"): (4096, 11008, 32, 32, 32, 128, 32000, False, THETA_2),
    ("llama2", "13B"): (5120, 13824, 40, 40, 40, 128, 32000, False, THETA_2),
    ("llama2", "34B"): (8192, 22016, 48, 64, 8, 128, 32000, False, THETA_2),
    ("llama2", "70B"): (8192, 28672, 80, 64, 8, 128, 32000, False, THETA_2),
    ("llama3", "3.0-8B"): (4096, 14336, 32, 32, 8, 128, 128256, False, THETA_3),
    ("llama3", "3.0-70B"): (8192, 28672, 80, 64, 8, 128, 128256, False, THETA_3),
    ("llama3", "8B"): (4096, 14336, 32, 32, 8, 128, 128256, False, SCALED_8),
    ("llama3", "70B"): (8192, 28672, 80, 64, 8, 128, 128256, False, SCALED_8),
    ("llama3", "405B"): (16384, 53248, 126, 128, 8, 128, 128256, False, SCALED_8),
    ("llama3", "1B"): (2048, 8192, 16, 32, 8, 64, 128256, True, SCALED_32),
    ("llama3", "3B"): (3072, 8192, 28, 24, 8, 128, 128256, True, SCALED_32),
    ("llama3", "debugmodel"): (256, 768, 6, 16, 16, 16, 2048, False, SCALED_8),
}


def judge(args, report, model_name, flavor, folder):
    what = f"{model_name} {flavor}"
    run = titan.Run(args, {"model": model_name, "flavor": flavor, "seq_len": 2048}, folder)
    (folder / "config.json").write_text(json.dumps(run.result["hf_config"]))
    config = AutoConfig.from_pretrained(folder)
    hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, tied, rope = PUBLISHED[model_name, flavor]
    for key, expected in (("hidden_size", hidden), ("intermediate_size", intermediate), ("num_hidden_layers", layers),
                          ("num_attention_heads", heads), ("num_key_value_heads", kv_heads), ("head_dim", head_dim),
                          ("vocab_size", vocab), ("tie_word_embeddings", tied), ("rms_norm_eps", 1e-5),
                          ("hidden_act", "silu"), ("attention_bias", False), ("mlp_bias", False),
                          ("architectures", ["LlamaForCausalLM"])):
        report.equal(f"{what}: {key}", getattr(config, key), expected)
    report.equal(f"{what}: rope", {key: config.rope_parameters.get(key) for key in rope}, rope)

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    theirs = {name: tuple(weight.shape) for name, weight in model.named_parameters()}  # a tied weight counts once
    ours = {run.their_name[name]: tuple(shape) for name, shape in run.shapes.items()}
    report.equal(f"{what}: tensors", len(ours), len(run.shapes))
    report.equal(f"{what}: names and shapes that differ", sorted(set(ours.items()) ^ set(theirs.items())), [])
    report.equal(f"{what}: parameters", run.result["num_parameters"], model.num_parameters())


def main():
    args = titan.arguments(__doc__.splitlines()[0])
    report = titan.Report()
    with tempfile.TemporaryDirectory() as temporary:
        for model_name, flavor in PUBLISHED:
            judge(args, report, model_name, flavor, pathlib.Path(temporary) / f"{model_name}_{flavor}")
    report.finish()


if __name__ == "__main__":
    main()
