"""Lets Hugging Face transformers (eager attention) judge the models with experts: mixtral and qwen3.

    mixture_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models in fp32: logits, loss and all gradients, with weights that Titan initialises (exported to a folder that
from_pretrained reads) and with wider ones that transformers initialises; which experts each token goes to, as integers, in
fp64; ten steps of AdamW beside torch's; sizes and names of the published flavors. Controls show that the comparison can fail.
"""

import json
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from transformers import (AutoConfig, AutoModelForCausalLM, MixtralConfig, MixtralForCausalLM, Qwen3MoeConfig,
                          Qwen3MoeForCausalLM)

import titan_referee as titan

LOSS, GRADIENTS, LOGITS = 1e-6, 1e-5, 1e-5
LOGITS_OF_WIDE_WEIGHTS = 1e-4  # sharp attention magnifies rounding on both sides
VOCAB, ROWS, SEQ_LEN = 128, 2, 96
TINY = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": VOCAB, "hidden_dim": 48, "num_experts": 8}
TINY_QWEN3 = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "vocab_size": VOCAB, "num_experts": 8,
              "top_k": 2, "moe_hidden_dim": 48}
FAMILIES = {"mixtral": (MixtralConfig, MixtralForCausalLM), "qwen3": (Qwen3MoeConfig, Qwen3MoeForCausalLM)}
CASES = {
    "two of eight": ("mixtral", TINY),
    "one of four": ("mixtral", TINY | {"num_experts": 4, "top_k": 1}),
    "five of six, tied": ("mixtral", TINY | {"num_experts": 6, "top_k": 5, "enable_weight_tying": True}),
    "wide heads": ("mixtral", TINY | {"head_dim": 32, "norm_eps": 1e-6, "rope_theta": 1e4}),
    "qwen3, two of eight": ("qwen3", TINY_QWEN3),
    "qwen3, eight of sixteen, tied": ("qwen3", TINY_QWEN3 | {"num_experts": 16, "top_k": 8, "enable_weight_tying": True}),
    "qwen3, wide heads": ("qwen3", TINY_QWEN3 | {"head_dim": 128, "n_kv_heads": 4, "rope_theta": 1e4}),
}
PUBLISHED = {  # what their config.json files say, and parameters by torchtitan's count, where it has the model
    ("mixtral", "8x7B"): ({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
                           "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 32768,
                           "num_local_experts": 8, "num_experts_per_tok": 2, "rms_norm_eps": 1e-5, "sliding_window": None,
                           "architectures": ["MixtralForCausalLM"]}, 1e6, None),
    ("mixtral", "8x22B"): ({"hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 56, "num_attention_heads": 48,
                            "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 65536,
                            "num_local_experts": 8, "num_experts_per_tok": 2, "rms_norm_eps": 1e-5, "sliding_window": None,
                            "architectures": ["MixtralForCausalLM"]}, 1e6, None),
    ("qwen3", "30B-A3B"): ({"hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "head_dim": 128,
                            "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 151936,
                            "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": True, "decoder_sparse_step": 1,
                            "mlp_only_layers": [], "rms_norm_eps": 1e-6, "max_position_embeddings": 40960,
                            "architectures": ["Qwen3MoeForCausalLM"]}, 1e6, 30_532_122_624),
    ("qwen3", "235B-A22B"): ({"hidden_size": 4096, "intermediate_size": 12288, "moe_intermediate_size": 1536, "head_dim": 128,
                              "num_hidden_layers": 94, "num_attention_heads": 64, "num_key_value_heads": 4,
                              "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": True,
                              "decoder_sparse_step": 1, "mlp_only_layers": [], "rms_norm_eps": 1e-6,
                              "max_position_embeddings": 40960, "architectures": ["Qwen3MoeForCausalLM"]}, 5e6, 235_093_634_560),
}


def choose_batch(count, generator):
    """Random ids and the ids that follow; the last of each row and every tenth have no target."""
    tokens = torch.randint(VOCAB, (count, ROWS, SEQ_LEN), generator=generator)
    labels = tokens.roll(-1, dims=2)
    labels[..., -1] = -100
    labels[torch.rand(labels.shape, generator=generator) < 0.1] = -100
    return tokens, labels


def as_stored(run, kind):
    """Our tensors as Hugging Face's files have them: each expert's matrices on their own."""
    found = {}
    for name, tensor in run.tensors(kind).items():
        rules = [rule["theirs"] for rule in run.result["name_rules"] if rule["ours"] == name]
        if ".experts." not in name:
            found[rules[0]] = tensor
            continue
        assert len(rules) == len(tensor), name
        found |= {theirs: part.clone() for theirs, part in zip(rules, tensor, strict=True)}
    return found


def in_memory(ours, model):
    """Of our tensors by our names, those of transformers' model: it keeps gates and ups of all experts in one."""
    found = {}
    for name in dict(model.named_parameters()):
        if name == "model.embed_tokens.weight":
            found[name] = ours["tok_embeddings.weight"]
        elif name in ("model.norm.weight", "lm_head.weight"):
            found[name] = ours["norm.weight" if "norm" in name else "output.weight"]
        else:
            layer, rest = name.removeprefix("model.").split(".", 2)[1:]
            block = f"layers.{layer}."
            if rest == "mlp.experts.gate_up_proj":
                found[name] = torch.cat([ours[block + "moe.experts.w1"], ours[block + "moe.experts.w3"]], dim=1)
            elif rest == "mlp.experts.down_proj":
                found[name] = ours[block + "moe.experts.w2"]
            else:
                plain = {"mlp.gate.weight": "moe.router.gate.weight", "input_layernorm.weight": "attention_norm.weight",
                         "post_attention_layernorm.weight": "ffn_norm.weight"}
                plain |= {f"self_attn.{one}_proj.weight": f"attention.w{one}.weight" for one in "qkvo"}
                plain |= {f"self_attn.{one}_norm.weight": f"attention.{one}_norm.weight" for one in "qk"}
                found[name] = ours[block + plain[rest]]
    return found


def to_ours(theirs):
    """The other way round: our tensors of transformers' model in memory."""
    found = {}
    for name, tensor in theirs.items():
        if not name.startswith("model.layers."):
            found[{"model.embed_tokens.weight": "tok_embeddings.weight", "model.norm.weight": "norm.weight",
                   "lm_head.weight": "output.weight"}[name]] = tensor
            continue
        layer, rest = name.removeprefix("model.").split(".", 2)[1:]
        block = f"layers.{layer}."
        if rest == "mlp.experts.gate_up_proj":
            found[block + "moe.experts.w1"], found[block + "moe.experts.w3"] = tensor.chunk(2, dim=1)
        elif rest == "mlp.experts.down_proj":
            found[block + "moe.experts.w2"] = tensor
        elif rest.startswith("self_attn.") and rest.endswith("_norm.weight"):
            found[block + "attention." + rest.removeprefix("self_attn.")] = tensor
        elif rest.startswith("self_attn."):
            found[f"{block}attention.w{rest.removeprefix('self_attn.')[0]}.weight"] = tensor
        else:
            found[block + {"mlp.gate.weight": "moe.router.gate.weight", "input_layernorm.weight": "attention_norm.weight",
                           "post_attention_layernorm.weight": "ffn_norm.weight"}[rest]] = tensor
    return found


def load(kind, folder, report, what, **changes):
    model, info = kind.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager", local_files_only=True,
        output_loading_info=True, **changes)
    for names in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        report.equal(f"{what}: {names}", sorted(info[names]), [])
    return model.eval()


def compare(report, what, run, model, tokens, labels, limit):
    logits = model(tokens, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    model.zero_grad()
    loss.backward()
    report.at_least(f"{what}: largest logit", logits.abs().max().item(), 0.5)
    report.at_most(f"{what}: logits, max abs", titan.max_abs(run.logits(ROWS, SEQ_LEN, VOCAB), logits.detach()), limit)
    report.at_most(f"{what}: loss, relative", abs(run.result["loss_sum"] / loss.item() - 1), LOSS)
    theirs = {name: weight.grad for name, weight in model.named_parameters()}
    ours = in_memory(run.tensors("gradients"), model)
    # where one expert is chosen its weight is 1 whatever the gate says
    judged = [name for name in theirs if not (name.endswith("gate.weight") and model.config.num_experts_per_tok == 1)]
    worst = max(judged, key=lambda name: titan.relative(ours[name], theirs[name]))
    report.at_most(f"{what}: gradients, worst relative ({worst})", titan.relative(ours[worst], theirs[worst]), GRADIENTS)
    if model.config.num_experts_per_tok == 1:
        gates = max(gradient.abs().max().item() for name, gradient in ours.items() if name.endswith("gate.weight"))
        report.at_most(f"{what}: gradient of gates that decide nothing", gates, 1e-5)


def controls(report, run, model, tokens):
    """What mistakes would change, by the referee's own model."""
    logits = run.logits(ROWS, SEQ_LEN, VOCAB)
    gates = [layer.mlp for layer in model.model.layers]

    def change(what, edit, undo):
        edit()
        with torch.no_grad():
            report.at_least(f"control: {what}, max abs", titan.max_abs(model(tokens, use_cache=False).logits, logits),
                            10 * LOGITS_OF_WIDE_WEIGHTS)
        undo()

    def set_top_k(count):
        for gate in gates:
            gate.gate.top_k = count

    def swap():
        for gate in gates:
            gate.experts.gate_up_proj.data = gate.experts.gate_up_proj.data.roll(gate.experts.gate_up_proj.shape[1] // 2, dims=1)

    def renumber(by):
        for gate in gates:
            gate.experts.down_proj.data = gate.experts.down_proj.data.roll(by, dims=0)

    change("one expert less", lambda: set_top_k(1), lambda: set_top_k(2))
    change("gate and up exchanged", swap, swap)
    change("another expert's output", lambda: renumber(1), lambda: renumber(-1))


def judge_routing(args, report, what, job, folder, model, tokens):
    """In fp64 nothing but equal scores can part the choices; our own come from the probe's model in double."""
    run = titan.Run(args, job | {"dtype": "float64", "outputs": ["layers.*.moe.router.choice"]}, folder)
    model = model.double()
    chosen = []
    hooks = [layer.mlp.gate.register_forward_hook(lambda _, __, out: chosen.append(out[2])) for layer in model.model.layers]
    with torch.no_grad():
        model(tokens, use_cache=False)
    for hook in hooks:
        hook.remove()
    for number, theirs in enumerate(chosen):
        ours = titan.read_integers(run.folder / f"outputs/layers.{number}.moe.router.choice.bin", theirs.shape)
        report.at_most(f"{what}: choices that differ in layer {number}",
                       (ours.sort(-1).values != theirs.sort(-1).values).sum().item(), 0)
        counts = torch.bincount(theirs.flatten(), minlength=job["options"]["num_experts"])
        report.at_least(f"{what}: most tokens of an expert over even load in layer {number}",
                        counts.max().item() / counts.double().mean().item(), 1.01)


def judge_case(args, report, name, folder):
    family, options = CASES[name]
    kind = FAMILIES[family][1]
    tokens, labels = choose_batch(1, torch.Generator().manual_seed(len(name)))
    job = {"model": family, "seq_len": SEQ_LEN, "seed": 7, "options": options, "batches": 1, "rows": ROWS,
           "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels)}
    ours = titan.Run(args, job, folder / "ours")
    (folder / "hf").mkdir()
    (folder / "hf/config.json").write_text(json.dumps(ours.result["hf_config"]))
    save_file(as_stored(ours, "parameters"), folder / "hf/model.safetensors", metadata={"format": "pt"})
    model = load(kind, folder / "hf", report, name)
    compare(report, f"{name}, Titan's weights", ours, model, tokens[0], labels[0], LOGITS)

    torch.manual_seed(3)  # wider than any recipe, so that tokens go to their experts decidedly
    with torch.no_grad():
        for parameter_name, weight in model.named_parameters():
            weight.uniform_(0.5, 1.5) if "norm" in parameter_name else weight.normal_(0, 0.15)
    for parameter_name, weight in to_ours({n: w.detach() for n, w in model.named_parameters()}).items():
        titan.write_tensor(folder / "weights" / f"{parameter_name}.bin", weight)
    job |= {"weights": str(folder / "weights")}
    theirs = titan.Run(args, job, folder / "theirs")
    compare(report, f"{name}, wide weights", theirs, model, tokens[0], labels[0], LOGITS_OF_WIDE_WEIGHTS)
    if name.endswith("two of eight"):
        controls(report, theirs, model, tokens[0])
    judge_routing(args, report, name, job, folder / "routing", model, tokens[0])


def judge_training(args, report, family, options, folder):
    steps, what = 10, f"AdamW, {family}"
    config, kind = FAMILIES[family]
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(16, (steps, ROWS, SEQ_LEN), generator=generator)  # few distinct ids: the loss falls quickly
    labels = tokens.roll(-1, dims=2)
    labels[..., -1] = -100
    job = {"model": family, "seq_len": SEQ_LEN, "seed": 11, "options": options, "batches": steps, "rows": ROWS,
           "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels),
           "optimizer": {"name": "AdamW", "steps": steps, "max_norm": 1.0,
                         "options": {"lr": 8e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}}}
    run = titan.Run(args, job, folder / "ours")
    model = kind(config.from_dict(
        run.result["hf_config"] | {"attn_implementation": "eager", "experts_implementation": "eager"})).float()
    start = run.tensors("parameters")
    with torch.no_grad():
        for name, tensor in in_memory(start, model).items():
            model.get_parameter(name).copy_(tensor)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    losses, norms = [], []
    for step in range(steps):
        loss = torch.nn.functional.cross_entropy(model(tokens[step], use_cache=False).logits.flatten(0, 1),
                                                 labels[step].flatten())
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        optimizer.step()
        losses.append(loss.item())
    for step, (found, expected) in enumerate(zip(run.result["losses"], losses, strict=True)):
        report.at_most(f"{what}: loss of step {step + 1} ({expected:.5f})", abs(found - expected), 1e-5)
    report.at_most(f"{what}: gradient norms, worst relative",
                   max(abs(found / expected - 1) for found, expected in zip(run.result["norms"], norms, strict=True)), 1e-5)
    report.at_least(f"{what}: the loss fell by", losses[0] - losses[-1], 0.1)
    final = in_memory(run.tensors("final"), model)
    before = in_memory(start, model)
    moved = {name: titan.relative(final[name] - before[name], weight.detach() - before[name])
             for name, weight in model.named_parameters()}
    report.at_most(f"{what}: change of weights, worst relative", max(moved.values()), 1e-3)


def judge_flavor(args, report, family, flavor, folder):
    run = titan.Run(args, {"model": family, "flavor": flavor, "seq_len": 2048}, folder)
    (folder / "config.json").write_text(json.dumps(run.result["hf_config"]))
    config = AutoConfig.from_pretrained(folder)
    expected, theta, parameters = PUBLISHED[family, flavor]
    for key, value in (expected | {"tie_word_embeddings": False, "hidden_act": "silu"}).items():
        report.equal(f"{flavor}: {key}", getattr(config, key), value)
    report.equal(f"{flavor}: theta", config.rope_parameters["rope_theta"], theta)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
        ours = {name: torch.empty(shape) for name, shape in run.shapes.items()}
    theirs = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    report.equal(f"{flavor}: shapes", {name: tuple(t.shape) for name, t in in_memory(ours, model).items()}, theirs)
    report.equal(f"{flavor}: parameters", run.result["num_parameters"], model.num_parameters())
    if parameters:
        report.equal(f"{flavor}: parameters as torchtitan counts", run.result["num_parameters"], parameters)


def main():
    args = titan.arguments(__doc__.splitlines()[0])
    transformers.utils.logging.disable_progress_bar()
    report = titan.Report()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in CASES:
            judge_case(args, report, name, folder / name.replace(" ", "_").replace(",", ""))
        judge_training(args, report, "mixtral", TINY, folder / "training")
        judge_training(args, report, "qwen3", TINY_QWEN3, folder / "training_qwen3")
        for family, flavor in PUBLISHED:
            judge_flavor(args, report, family, flavor, folder / flavor)
    report.finish()


if __name__ == "__main__":
    main()
