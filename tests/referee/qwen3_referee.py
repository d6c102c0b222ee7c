"""Lets Hugging Face transformers (eager attention, fp32) judge the qwen3 plugin.

    qwen3_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models: logits, loss and all gradients, with weights that Titan initialises (exported to a folder that
from_pretrained reads) and with weights that transformers initialises; ten steps of AdamW; of every flavor config.json, names
and shapes as the published model has them, on the meta device. Controls show that the comparison can fail: deliberate mistakes
in the referee's model must be seen.
"""

import json
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM

import titan_referee as titan

LOSS, GRADIENTS = 1e-6, 1e-5
LOGITS, LOGITS_OF_WIDE_WEIGHTS = 1e-5, 1e-4  # sharp attention magnifies rounding on both sides
VOCAB = 128
TINY = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "hidden_dim": 96, "vocab_size": VOCAB}
TIED = {"enable_weight_tying": True}
CASES = {  # name: (options, rows, seq_len)
    "gqa": (TINY, 2, 200),
    "tied": (TINY | TIED, 2, 200),
    "wide heads": (TINY | {"head_dim": 128, "n_layers": 1}, 2, 200),  # as published: H * hd is more than dim
    "narrow heads": (TINY | {"head_dim": 8, "n_kv_heads": 4}, 2, 200),
    "one kv head": (TINY | TIED | {"n_kv_heads": 1, "rope_theta": 1e4, "norm_eps": 1e-3}, 2, 200),
    "stretched positions": (TINY, 2, 200),
    "long": (TINY | {"n_heads": 1, "n_kv_heads": 1, "n_layers": 1}, 1, 2048),
}
# from the config.json files that the models were published with: hidden, intermediate, layers, heads, tied
PUBLISHED = {
    "0.6B": (1024, 3072, 28, 16, True, 596_049_920),
    "1.7B": (2048, 6144, 28, 16, True, 1_720_574_976),
    "4B": (2560, 9728, 36, 32, True, 4_022_468_096),
    "8B": (4096, 12288, 36, 32, False, 8_190_735_360),
    "14B": (5120, 17408, 40, 40, False, 14_768_307_200),
    "32B": (5120, 25600, 64, 64, False, 32_762_123_264),
}


def choose_batch(shape, generator, num_ids=VOCAB):
    """Random ids and the ids that follow; the last of each row and every tenth have no target."""
    tokens = torch.randint(num_ids, shape, generator=generator)
    labels = tokens.roll(-1, dims=-1)
    labels[..., -1] = -100
    labels[torch.rand(labels.shape, generator=generator) < 0.1] = -100
    return tokens, labels


def load(folder, report, what, config=None):
    model, info = Qwen3ForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32, attn_implementation="eager",
                                                   local_files_only=True, output_loading_info=True)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        report.equal(f"{what}: {kind}", list(info[kind]), [])
    return model.eval()


def forward(model, tokens, positions=None):
    mask = torch.ones_like(tokens)  # given, or transformers takes jumps in the positions for document boundaries
    return model(tokens, attention_mask=mask, position_ids=positions, use_cache=False).logits


def compare(report, what, run, model, tokens, labels, positions, logits_limit):
    logits = forward(model, tokens, positions)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    model.zero_grad()
    loss.backward()
    report.at_least(f"{what}: largest logit", logits.abs().max().item(), 0.5)
    report.at_most(f"{what}: logits, max abs", titan.max_abs(run.logits(*tokens.shape, VOCAB), logits.detach()), logits_limit)
    report.at_most(f"{what}: loss, relative", abs(run.result["loss_sum"] / loss.item() - 1), LOSS)
    theirs = dict(model.named_parameters())
    ours = run.tensors("gradients")
    report.equal(f"{what}: names of gradients", sorted(run.their_name[name] for name in ours), sorted(theirs))
    worst = max(titan.relative(gradient, theirs[run.their_name[name]].grad) for name, gradient in ours.items())
    report.at_most(f"{what}: gradients, worst relative", worst, GRADIENTS)


def controls(report, run, folder, tokens):
    """What mistakes would change, by the referee's own model."""
    logits = run.logits(*tokens.shape, VOCAB)

    def change(what, edit_weights=lambda m: None, **changed):
        config = Qwen3Config.from_dict(Qwen3Config.from_pretrained(folder).to_dict() | changed)
        model = load(folder, report, f"control: {what}", config)
        with torch.no_grad():
            edit_weights(model)
            report.at_least(f"control: {what}, max abs", titan.max_abs(forward(model, tokens), logits), 10 * LOGITS_OF_WIDE_WEIGHTS)

    def without_norms(model):
        for layer in model.model.layers:
            layer.self_attn.q_norm = layer.self_attn.k_norm = torch.nn.Identity()

    def in_another_order(model):
        """As weights of models that rotate neighbours would have to be brought here."""
        for layer in model.model.layers:
            for norm in (layer.self_attn.q_norm, layer.self_attn.k_norm):
                norm.weight.copy_(norm.weight.roll(norm.weight.numel() // 2))

    def swapped(model):
        for layer in model.model.layers:
            layer.self_attn.q_norm, layer.self_attn.k_norm = layer.self_attn.k_norm, layer.self_attn.q_norm

    change("no norms of queries and keys", without_norms)
    change("elements of the norms in another order", in_another_order)
    change("norms of queries and keys the other way round", swapped)
    change("another base of rotation", rope_parameters={"rope_type": "default", "rope_theta": 5e5})


def judge_case(args, report, name, folder):
    options, rows, seq_len = CASES[name]
    tokens, labels = choose_batch((rows, seq_len), torch.Generator().manual_seed(len(name)))
    positions = None
    job = {"model": "qwen3", "seq_len": seq_len, "seed": 7, "options": options, "batches": 1, "rows": rows,
           "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels)}
    if name == "stretched positions":
        positions = (11 + 7 * torch.arange(seq_len)).expand(rows, seq_len)
        job["positions"] = titan.write_tensor(folder / "positions.bin", positions)

    ours = titan.Run(args, job, folder / "ours")
    (folder / "hf").mkdir()
    (folder / "hf" / "config.json").write_text(json.dumps(ours.result["hf_config"]))
    save_file({ours.their_name[name]: tensor for name, tensor in ours.tensors("parameters").items()},
              folder / "hf" / "model.safetensors", metadata={"format": "pt"})
    compare(report, f"{name}, Titan's weights", ours, load(folder / "hf", report, name), tokens, labels, positions, LOGITS)

    # wider than any recipe and every norm another, so that attention is far from uniform and mistakes in it show
    torch.manual_seed(3)
    model = Qwen3ForCausalLM(Qwen3Config.from_pretrained(folder / "hf", initializer_range=0.15, dtype="float32",
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
    if name == "gqa":
        model.save_pretrained(folder / "saved")
        controls(report, theirs, folder / "saved", tokens)


def train(args, report, folder, what, options):
    """Ten steps beside torch's AdamW."""
    steps, rows, seq_len = 10, 2, 64
    # few distinct ids, so that the loss falls quickly
    tokens, labels = choose_batch((steps, rows, seq_len), torch.Generator().manual_seed(5), num_ids=16)
    job = {"model": "qwen3", "seq_len": seq_len, "seed": 11, "options": options, "batches": steps, "rows": rows,
           "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels),
           "optimizer": {"name": "AdamW", "steps": steps, "max_norm": 1.0,
                         "options": {"lr": 8e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}}}
    run = titan.Run(args, job, folder / "ours")
    model = Qwen3ForCausalLM(Qwen3Config.from_dict(run.result["hf_config"] | {"attn_implementation": "eager"})).float()
    parameters = dict(model.named_parameters())
    start, final = run.tensors("parameters"), run.tensors("final")
    with torch.no_grad():
        for name, tensor in start.items():
            parameters[run.their_name[name]].copy_(tensor)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, fused=False,
                                  foreach=False)
    for step in range(steps):
        loss = torch.nn.functional.cross_entropy(forward(model, tokens[step]).flatten(0, 1), labels[step].flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
        optimizer.step()
        report.at_most(f"{what}: loss of step {step + 1} ({loss.item():.5f})", abs(run.result["losses"][step] - loss.item()), 1e-5)
        report.at_most(f"{what}: gradient norm of step {step + 1}, relative", abs(run.result["norms"][step] / norm - 1), 1e-5)
    changes = {name: titan.relative(final[name] - start[name], parameters[run.their_name[name]].detach() - start[name])
               for name in final}
    report.at_most(f"{what}: change of weights, worst relative", max(changes.values()), 1e-3)
    moved = min(titan.relative(final[name], start[name]) for name in final)
    report.at_least(f"{what}: the weights moved by", moved, 1e-4)


def judge_flavor(args, report, flavor, folder):
    run = titan.Run(args, {"model": "qwen3", "flavor": flavor, "seq_len": 2048}, folder)
    (folder / "config.json").write_text(json.dumps(run.result["hf_config"]))
    config = AutoConfig.from_pretrained(folder)
    hidden, intermediate, layers, heads, tied, parameters = PUBLISHED[flavor]
    for key, expected in (("hidden_size", hidden), ("intermediate_size", intermediate), ("num_hidden_layers", layers),
                          ("num_attention_heads", heads), ("num_key_value_heads", 8), ("head_dim", 128),
                          ("vocab_size", 151936), ("tie_word_embeddings", tied), ("rms_norm_eps", 1e-6), ("hidden_act", "silu"),
                          ("attention_bias", False), ("use_sliding_window", False), ("max_position_embeddings", 40960),
                          ("layer_types", ["full_attention"] * layers), ("architectures", ["Qwen3ForCausalLM"])):
        report.equal(f"{flavor}: {key}", getattr(config, key), expected)
    report.equal(f"{flavor}: rope", config.rope_parameters, {"rope_type": "default", "rope_theta": 1e6})

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    theirs = {name: tuple(weight.shape) for name, weight in model.named_parameters()}  # a tied one once
    ours = {run.their_name[name]: tuple(shape) for name, shape in run.shapes.items()}
    report.equal(f"{flavor}: tensors", len(ours), len(run.shapes))
    report.equal(f"{flavor}: names and shapes that differ", sorted(set(ours.items()) ^ set(theirs.items())), [])
    report.equal(f"{flavor}: parameters of transformers' model", model.num_parameters(), parameters)
    report.equal(f"{flavor}: parameters", run.result["num_parameters"], parameters)


def main():
    args = titan.arguments(__doc__.splitlines()[0])
    transformers.utils.logging.disable_progress_bar()
    report = titan.Report()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in CASES:
            judge_case(args, report, name, folder / name.replace(" ", "_"))
        train(args, report, folder / "trained", "trained", TINY)
        train(args, report, folder / "trained_tied", "trained, tied", TINY | TIED | {"head_dim": 32})
        for flavor in PUBLISHED:
            judge_flavor(args, report, flavor, folder / flavor)
    report.finish()


if __name__ == "__main__":
    main()
