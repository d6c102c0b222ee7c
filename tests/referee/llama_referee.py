"""Lets Hugging Face transformers (eager attention, fp32) judge the llama3 and llama2 plugins.

    llama_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models: logits, loss and all gradients, with weights that Titan initialises (exported to a folder that
from_pretrained reads) and with weights that transformers initialises; rotary frequencies on their own. Controls show that
the comparison can fail: deliberate mistakes in the referee's model must be seen.
"""

import itertools
import json
import math
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

import titan_referee as titan

LOSS, GRADIENTS = 1e-6, 1e-5
LOGITS, LOGITS_OF_WIDE_WEIGHTS = 1e-5, 1e-4  # sharp attention magnifies rounding on both sides
VOCAB = 128
TINY = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": VOCAB, "multiple_of": 32}
SCALED_8 = {"rope_scaling": {"scaling_factor": 8.0}}
SCALED_32 = {"rope_scaling": {"scaling_factor": 32.0}}
TIED = {"enable_weight_tying": True}
CASES = {  # name: (model, options, rows, seq_len)
    "gqa": ("llama3", TINY, 2, 200),
    "gqa scaled": ("llama3", TINY | SCALED_8, 2, 200),
    "gqa tied": ("llama3", TINY | TIED, 2, 200),
    "gqa tied scaled": ("llama3", TINY | TIED | SCALED_32, 2, 200),
    "mha": ("llama3", TINY | {"n_kv_heads": 4} | SCALED_8, 2, 200),
    "one kv head": ("llama3", TINY | {"n_kv_heads": 1} | SCALED_8, 2, 200),
    "wide heads": ("llama3", TINY | {"head_dim": 32, "ffn_dim_multiplier": 1.3}, 2, 200),
    "llama2": ("llama2", TINY | {"norm_eps": 1e-6, "n_kv_heads": None}, 2, 200),
    "stretched positions": ("llama3", TINY | SCALED_8, 2, 200),
    "three bands": ("llama3", TINY | SCALED_8 | {"n_heads": 1, "n_kv_heads": 1, "n_layers": 1}, 1, 4096),
}


def choose_batch(rows, seq_len, generator):
    """Random ids and the ids that follow; the last of each row and every tenth have no target."""
    tokens = torch.randint(VOCAB, (rows, seq_len), generator=generator)
    labels = torch.cat([tokens[:, 1:], torch.full((rows, 1), -100)], dim=1)
    labels[torch.rand(labels.shape, generator=generator) < 0.1] = -100
    return tokens, labels


def export(run, folder):
    """Titan's weights as a Hugging Face folder, by the plugin's name rules and config alone."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(run.result["hf_config"]))
    weights = {run.their_name[name]: tensor for name, tensor in run.tensors("parameters").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def load(folder, report, what):
    model, info = LlamaForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", local_files_only=True, output_loading_info=True)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        report.equal(f"{what}: {kind}", list(info[kind]), [])
    return model.eval()


def forward(model, tokens, positions):
    mask = torch.ones_like(tokens)  # given, or transformers takes jumps in the positions for document boundaries
    return model(tokens, attention_mask=mask, position_ids=positions, use_cache=False).logits


def compare(report, what, run, model, tokens, labels, positions, logits_limit):
    rows, seq_len = tokens.shape
    logits = forward(model, tokens, positions)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    model.zero_grad()
    loss.backward()
    report.at_least(f"{what}: largest logit", logits.abs().max().item(), 0.5)
    report.at_most(f"{what}: logits, max abs", titan.max_abs(run.logits(rows, seq_len, VOCAB), logits.detach()),
                   logits_limit)
    report.at_most(f"{what}: loss, relative", abs(run.result["loss_sum"] / loss.item() - 1), LOSS)
    theirs = dict(model.named_parameters())
    ours = run.tensors("gradients")
    report.equal(f"{what}: names of gradients", sorted(run.their_name[name] for name in ours), sorted(theirs))
    worst = max(titan.relative(gradient, theirs[run.their_name[name]].grad) for name, gradient in ours.items())
    report.at_most(f"{what}: gradients, worst relative", worst, GRADIENTS)


def controls(report, run, folder, tokens):
    """What mistakes would change, by the referee's own model."""
    logits = run.logits(*tokens.shape, VOCAB)
    config = LlamaConfig.from_pretrained(folder)

    def change(what, edit_config=lambda c: None, edit_weights=lambda m: None):
        changed = LlamaConfig.from_dict(config.to_dict())
        edit_config(changed)
        model = LlamaForCausalLM.from_pretrained(folder, config=changed, dtype=torch.float32,
                                                 attn_implementation="eager", local_files_only=True).eval()
        edit_weights(model)
        with torch.no_grad():
            report.at_least(f"control: {what}, max abs", titan.max_abs(forward(model, tokens, None), logits),
                            10 * LOGITS_OF_WIDE_WEIGHTS)

    def without_scaling(c):
        c.rope_parameters = {"rope_type": "default", "rope_theta": c.rope_parameters["rope_theta"]}

    def as_pairs(model):
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if "q_proj" in name or "k_proj" in name:
                    weight.copy_(weight.unflatten(0, (-1, config.head_dim // 2, 2)).transpose(1, 2).flatten(0, 2))

    change("no scaling of frequencies", edit_config=without_scaling)
    change("rotation of pairs instead of halves", edit_weights=as_pairs)
    change("epsilon 1e-4", edit_config=lambda c: setattr(c, "rms_norm_eps", 1e-4))


def judge_case(args, report, name, folder):
    model_name, options, rows, seq_len = CASES[name]
    generator = torch.Generator().manual_seed(len(name) + seq_len)
    tokens, labels = choose_batch(rows, seq_len, generator)
    positions = None
    job = {"model": model_name, "seq_len": seq_len, "seed": 7, "options": options, "batches": 1, "rows": rows,
           "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels)}
    if name == "stretched positions":
        positions = (11 + 7 * torch.arange(seq_len)).expand(rows, seq_len)
        job["positions"] = titan.write_tensor(folder / "positions.bin", positions)

    ours = titan.Run(args, job, folder / "ours")
    export(ours, folder / "hf")
    model = load(folder / "hf", report, name)
    compare(report, f"{name}, Titan's weights", ours, model, tokens, labels, positions, LOGITS)

    # wider than any recipe, so that attention is far from uniform and mistakes in it show
    torch.manual_seed(3)
    model = LlamaForCausalLM(LlamaConfig.from_pretrained(folder / "hf", initializer_range=0.15, dtype="float32",
                                                         attn_implementation="eager")).eval()
    with torch.no_grad():
        for parameter_name, weight in model.named_parameters():
            if "norm" in parameter_name:
                weight.uniform_(0.5, 1.5)
    our_name = {theirs: mine for mine, theirs in ours.their_name.items()}
    for parameter_name, weight in model.named_parameters():
        titan.write_tensor(folder / "weights" / f"{our_name[parameter_name]}.bin", weight)
    theirs = titan.Run(args, job | {"weights": str(folder / "weights")}, folder / "theirs")
    compare(report, f"{name}, transformers' weights", theirs, model, tokens, labels, positions, LOGITS_OF_WIDE_WEIGHTS)
    if name == "three bands":
        model.save_pretrained(folder / "saved")
        controls(report, theirs, folder / "saved", tokens)


def judge_frequencies(args, report, folder):
    cases = list(itertools.product((1e4, 5e5), (16, 64, 128), (1.0, 8.0, 32.0)))
    run = titan.Run(args, {"model": "llama3", "seq_len": 8, "seed": 0, "options": TINY, "ropes": [
        {"theta": theta, "head_dim": head_dim, "scaling_factor": factor} for theta, head_dim, factor in cases]}, folder)
    for (theta, head_dim, factor), found in zip(cases, run.result["rope_frequencies"], strict=True):
        rope = {"rope_type": "default", "rope_theta": theta}
        if factor != 1:
            rope |= {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192}
        config = LlamaConfig(hidden_size=head_dim * 2, num_attention_heads=2, head_dim=head_dim, rope_parameters=rope,
                             max_position_embeddings=131072)
        expected = LlamaRotaryEmbedding(config).inv_freq.double()
        found = torch.tensor(found, dtype=torch.float64)
        what = f"frequencies, theta {theta:g}, width {head_dim}, factor {factor:g}"
        report.equal(f"{what}: number", len(found), len(expected))
        report.at_most(f"{what}: max relative", ((found - expected) / expected).abs().max().item(), 1e-7)
    wavelengths = 2 * math.pi * 5e5 ** (torch.arange(64, dtype=torch.float64) / 64)  # theta 5e5, width 128
    bands = [wavelengths < 2048, (wavelengths >= 2048) & (wavelengths <= 8192), wavelengths > 8192]
    report.at_least("frequencies: fewest in a band of the scaling", float(min(band.sum() for band in bands)), 5)


def main():
    args = titan.arguments(__doc__.splitlines()[0])
    transformers.utils.logging.disable_progress_bar()
    report = titan.Report()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in CASES:
            judge_case(args, report, name, folder / name.replace(" ", "_"))
        judge_frequencies(args, report, folder / "frequencies")
    report.finish()


if __name__ == "__main__":
    main()
