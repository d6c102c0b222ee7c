"""Lets Hugging Face transformers (eager attention) judge the model deepseek_v3, as DeepSeek-V3 and as DeepSeek-V2.

    deepseek_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models in fp32: logits, loss and all gradients, with weights that Titan initialises (exported to a folder that
from_pretrained reads) and with wider ones that transformers draws, biases of the choice among them; which experts each token goes
to, as integers, where all but transformers' gate computes in fp64; ten steps of AdamW beside torch's; sizes and names of the
published flavors. Controls show that the comparison can fail.
"""

import json
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from transformers import (AutoConfig, AutoModelForCausalLM, DeepseekV2Config, DeepseekV2ForCausalLM, DeepseekV3Config,
                          DeepseekV3ForCausalLM)

import titan_referee as titan
from mixture_referee import ROWS, SEQ_LEN, VOCAB, choose_batch, load

LOSS, GRADIENTS, LOGITS = 1e-6, 1e-5, 1e-5
LOGITS_OF_WIDE_WEIGHTS = 1e-4  # sharp attention magnifies rounding on both sides
FAMILIES = {"deepseek_v3": (DeepseekV3Config, DeepseekV3ForCausalLM), "deepseek_v2": (DeepseekV2Config, DeepseekV2ForCausalLM)}
TINY = {"dim": 64, "inter_dim": 96, "moe_inter_dim": 48, "n_layers": 3, "n_heads": 4, "vocab_size": VOCAB, "kv_lora_rank": 32,
        "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "num_experts": 8, "top_k": 2, "norm_eps": 1e-6,
        "yarn": "always", "original_seq_len": 32, "load_balance_coeff": 1e-3}
V3 = TINY | {"q_lora_rank": 24, "num_shared_experts": 1, "score_func": "sigmoid", "route_norm": True, "route_scale": 2.5,
             "num_expert_groups": 4, "num_limited_groups": 2}
V2 = TINY | {"mscale": 0.7}
CASES = {
    "v3": ("deepseek_v3", V3),
    "v3, without groups, latent of queries and YaRN": (
        "deepseek_v3", V3 | {"q_lora_rank": 0, "num_expert_groups": 0, "num_limited_groups": 0, "rope_factor": 1.0, "top_k": 3}),
    "v3, wide values, plain weights": (
        "deepseek_v3", V3 | {"v_head_dim": 40, "route_norm": False, "route_scale": 1.0, "n_dense_layers": 0, "mscale": 0.5}),
    "v2": ("deepseek_v2", V2),
    "v2, groups and latent of queries": (
        "deepseek_v2", V2 | {"q_lora_rank": 24, "num_expert_groups": 4, "num_limited_groups": 2, "group_score": "best",
                             "route_scale": 4.0, "qk_rope_head_dim": 16, "rope_theta": 5e4}),
}
PUBLISHED = {  # what their config.json files say, and parameters by torchtitan's count
    "16B": ("deepseek_v2", {
        "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 27,
        "first_k_dense_replace": 1, "num_attention_heads": 16, "num_key_value_heads": 16, "q_lora_rank": None,
        "vocab_size": 102400, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "n_group": 1,
        "topk_group": 1, "topk_method": "greedy", "norm_topk_prob": False, "routed_scaling_factor": 1.0}, 15_706_484_224),
    "236B": ("deepseek_v2", {
        "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 60,
        "first_k_dense_replace": 1, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
        "vocab_size": 102400, "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6, "n_group": 8,
        "topk_group": 3, "topk_method": "group_limited_greedy", "norm_topk_prob": False,
        "routed_scaling_factor": 16.0}, 235_741_434_880),
    "671B": ("deepseek_v3", {
        "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
        "first_k_dense_replace": 3, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
        "vocab_size": 129280, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8,
        "topk_group": 4, "topk_method": "noaux_tc", "norm_topk_prob": True, "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid"}, 671_026_404_352),
}
COMMON = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "hidden_act": "silu",
          "attention_bias": False, "tie_word_embeddings": False, "max_position_embeddings": 163840, "moe_layer_freq": 1}

WHOLE = {"model.embed_tokens.weight": "tok_embeddings.weight", "model.norm.weight": "norm.weight", "lm_head.weight": "output.weight"}
BLOCK = {"input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate": "moe.router.gate"}
BLOCK |= {f"self_attn.{theirs}": f"attention.{ours}" for theirs, ours in (
    ("q_proj", "wq"), ("q_a_proj", "wq_a"), ("q_a_layernorm", "q_norm"), ("q_b_proj", "wq_b"), ("kv_a_proj_with_mqa", "wkv_a"),
    ("kv_a_layernorm", "kv_norm"), ("kv_b_proj", "wkv_b"), ("o_proj", "wo"))}
BLOCK |= {f"{place}.{theirs}_proj": f"{own}.{ours}" for place, own in (("mlp", "feed_forward"),
                                                                      ("mlp.shared_experts", "moe.shared_experts"))
          for theirs, ours in (("gate", "w1"), ("up", "w3"), ("down", "w2"))}
BLOCK = {f"{theirs}.weight": f"{ours}.weight" for theirs, ours in BLOCK.items()}
BLOCK |= {"mlp.gate.e_score_correction_bias": "moe.expert_bias"}


def weights_of(model):
    """Parameters and the biases of the choice, by transformers' names in memory."""
    return dict(model.named_parameters()) | {
        name: buffer for name, buffer in model.named_buffers() if name.endswith("e_score_correction_bias")}


def in_memory(ours, names):
    """Of our tensors by our names, transformers' by `names`: gates and ups of all experts are one there."""
    found = {}
    for name in names:
        if name in WHOLE:
            found[name] = ours[WHOLE[name]]
            continue
        layer, rest = name.removeprefix("model.layers.").split(".", 1)
        block = f"layers.{layer}."
        if rest == "mlp.experts.gate_up_proj":
            found[name] = torch.cat([ours[block + "moe.experts.w1"], ours[block + "moe.experts.w3"]], dim=1)
        elif rest == "mlp.experts.down_proj":
            found[name] = ours[block + "moe.experts.w2"]
        else:
            found[name] = ours[block + BLOCK[rest]]
    return found


def to_ours(theirs):
    """The other way round."""
    found = {}
    for name, tensor in theirs.items():
        if name in WHOLE:
            found[WHOLE[name]] = tensor
            continue
        layer, rest = name.removeprefix("model.layers.").split(".", 1)
        block = f"layers.{layer}."
        if rest == "mlp.experts.gate_up_proj":
            found[block + "moe.experts.w1"], found[block + "moe.experts.w3"] = tensor.chunk(2, dim=1)
        elif rest == "mlp.experts.down_proj":
            found[block + "moe.experts.w2"] = tensor
        else:
            found[block + BLOCK[rest]] = tensor
    return found


def as_stored(run):
    """Our tensors as Hugging Face's files have them: each expert's matrices on their own. A DeepSeek-V2 has no biases."""
    found = {}
    for name, tensor in run.tensors("parameters").items():
        rules = [rule["theirs"] for rule in run.result["name_rules"] if rule["ours"] == name]
        if name.endswith("expert_bias") and not rules:
            continue
        parts = tensor if ".experts." in name else [tensor]
        found |= {theirs: part.clone() for theirs, part in zip(rules, parts, strict=True)}
    return found


def gradients_of(run):
    return {name: titan.read_tensor(run.folder / f"gradients/{name}.bin", shape) for name, shape in run.shapes.items()
            if not name.endswith("expert_bias")}


def compare(report, what, run, model, tokens, labels, limit):
    logits = model(tokens, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    model.zero_grad()
    loss.backward()
    report.at_least(f"{what}: largest logit", logits.abs().max().item(), 0.5)
    report.at_most(f"{what}: logits, max abs", titan.max_abs(run.logits(ROWS, SEQ_LEN, VOCAB), logits.detach()), limit)
    report.at_most(f"{what}: loss, relative", abs(run.result["loss_sum"] / loss.item() - 1), LOSS)
    theirs = {name: weight.grad for name, weight in model.named_parameters()}
    ours = in_memory(gradients_of(run), theirs)
    worst = max(theirs, key=lambda name: titan.relative(ours[name], theirs[name]))
    report.at_most(f"{what}: gradients, worst relative ({worst})", titan.relative(ours[worst], theirs[worst]), GRADIENTS)


def gates_of(model):
    return [(number, layer.mlp.gate) for number, layer in enumerate(model.model.layers) if hasattr(layer.mlp, "gate")]


def controls(report, run, model, tokens):
    """What mistakes would change, by the referee's own model."""
    logits = run.logits(ROWS, SEQ_LEN, VOCAB)

    def see(what):
        with torch.no_grad():
            report.at_least(f"control: {what}, max abs", titan.max_abs(model(tokens, use_cache=False).logits, logits),
                            10 * LOGITS_OF_WIDE_WEIGHTS)

    def change(what, tensors, edit):
        before = [tensor.data.clone() for tensor in tensors]
        for tensor in tensors:
            tensor.data = edit(tensor.data)
        see(what)
        for tensor, data in zip(tensors, before, strict=True):
            tensor.data = data

    gates = [gate for _, gate in gates_of(model)]
    attentions = [layer.self_attn for layer in model.model.layers]
    change("no biases of the choice", [gate.e_score_correction_bias for gate in gates], torch.zeros_like)
    change("no shared expert", [model.model.layers[1].mlp.shared_experts.down_proj.weight], torch.zeros_like)
    change("keys of another head", [attentions[0].kv_b_proj.weight], lambda weight: weight.roll(weight.shape[0] // 4, dims=0))
    model.config.rope_interleave = False
    see("halves of a head rotate together")
    model.config.rope_interleave = True
    for gate in gates:
        gate.topk_group -= 1
    see("one group less")
    for gate in gates:
        gate.topk_group += 1
    scaling = attentions[0].scaling
    for attention in attentions:
        attention.scaling = attention.qk_head_dim**-0.5
    see("scores without YaRN's factor")
    for attention in attentions:
        attention.scaling = scaling


def judge_routing(args, report, what, job, folder, model, tokens):
    """Nothing but scores that are equal in fp32, in which transformers' gate computes, can part the choices."""
    run = titan.Run(args, job | {"dtype": "float64", "outputs": ["layers.*.moe.router.choice"]}, folder)
    model = model.double()
    chosen = {}

    def keep(number):
        return lambda _, __, out: chosen.update({number: out[2]})

    hooks = [gate.register_forward_hook(keep(number)) for number, gate in gates_of(model)]
    with torch.no_grad():
        model(tokens, use_cache=False)
    for hook in hooks:
        hook.remove()
    report.equal(f"{what}: layers with experts", len(chosen), job["options"]["n_layers"] - job["options"].get("n_dense_layers", 1))
    for number, theirs in chosen.items():
        ours = titan.read_integers(run.folder / f"outputs/layers.{number}.moe.router.choice.bin", theirs.shape)
        report.at_most(f"{what}: choices that differ in layer {number}",
                       (ours.sort(-1).values != theirs.sort(-1).values).sum().item(), 0)
        counts = torch.bincount(theirs.flatten(), minlength=job["options"]["num_experts"])
        report.at_least(f"{what}: most tokens of an expert over even load in layer {number}",
                        counts.max().item() / counts.double().mean().item(), 1.01)


def judge_case(args, report, name, folder):
    family, options = CASES[name]
    tokens, labels = choose_batch(1, torch.Generator().manual_seed(len(name)))
    job = {"model": "deepseek_v3", "seq_len": SEQ_LEN, "seed": 7, "options": options, "batches": 1, "rows": ROWS,
           "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels)}
    ours = titan.Run(args, job, folder / "ours")
    report.equal(f"{name}: model_type", ours.result["hf_config"]["model_type"], family)
    (folder / "hf").mkdir()
    (folder / "hf/config.json").write_text(json.dumps(ours.result["hf_config"]))
    save_file(as_stored(ours), folder / "hf/model.safetensors", metadata={"format": "pt"})
    model = load(FAMILIES[family][1], folder / "hf", report, name)
    compare(report, f"{name}, Titan's weights", ours, model, tokens[0], labels[0], LOGITS)

    torch.manual_seed(3)  # wider than any recipe, so that tokens go to their experts decidedly
    with torch.no_grad():
        for weight_name, weight in weights_of(model).items():
            weight.uniform_(0.5, 1.5) if "norm" in weight_name else weight.normal_(0, 0.15)
    biases = {weight: torch.zeros(shape) for weight, shape in ours.shapes.items() if weight.endswith("expert_bias")}
    for weight_name, weight in (biases | to_ours({n: w.detach() for n, w in weights_of(model).items()})).items():
        titan.write_tensor(folder / "weights" / f"{weight_name}.bin", weight)
    job |= {"weights": str(folder / "weights")}
    theirs = titan.Run(args, job, folder / "theirs")
    compare(report, f"{name}, wide weights", theirs, model, tokens[0], labels[0], LOGITS_OF_WIDE_WEIGHTS)
    if name == "v3":
        controls(report, theirs, model, tokens[0])
    judge_routing(args, report, name, job, folder / "routing", model, tokens[0])


def judge_training(args, report, family, options, folder):
    steps, what = 10, f"AdamW, {family}"
    config, kind = FAMILIES[family]
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(16, (steps, ROWS, SEQ_LEN), generator=generator)  # few distinct ids: the loss falls quickly
    labels = tokens.roll(-1, dims=2)
    labels[..., -1] = -100
    job = {"model": "deepseek_v3", "seq_len": SEQ_LEN, "seed": 11, "options": options, "batches": steps, "rows": ROWS,
           "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels),
           "optimizer": {"name": "AdamW", "steps": steps, "max_norm": 1.0,
                         "options": {"lr": 8e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}}}
    run = titan.Run(args, job, folder / "ours")
    model = kind(config.from_dict(
        run.result["hf_config"] | {"attn_implementation": "eager", "experts_implementation": "eager"})).float()
    before = in_memory(run.tensors("parameters"), dict(model.named_parameters()))
    with torch.no_grad():
        for name, tensor in before.items():
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
    final = in_memory(run.tensors("final"), before)
    moved = {name: titan.relative(final[name] - before[name], weight.detach() - before[name])
             for name, weight in model.named_parameters()}
    report.at_most(f"{what}: change of weights, worst relative", max(moved.values()), 1e-3)


def judge_flavor(args, report, flavor, folder):
    run = titan.Run(args, {"model": "deepseek_v3", "flavor": flavor, "options": {"yarn": "always"}, "seq_len": 2048}, folder)
    (folder / "config.json").write_text(json.dumps(run.result["hf_config"]))
    config = AutoConfig.from_pretrained(folder)
    family, expected, parameters = PUBLISHED[flavor]
    for key, value in (COMMON | expected | {"model_type": family}).items():
        report.equal(f"{flavor}: {key}", getattr(config, key), value)
    for key, value in {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "original_max_position_embeddings": 4096,
                       "beta_fast": 32.0, "beta_slow": 1.0}.items():
        report.equal(f"{flavor}: {key}", config.rope_parameters[key], value)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
        ours = {name: torch.empty(shape) for name, shape in run.shapes.items()}
    theirs = {name: tuple(weight.shape) for name, weight in weights_of(model).items()}
    report.equal(f"{flavor}: shapes", {name: tuple(t.shape) for name, t in in_memory(ours, theirs).items()}, theirs)
    report.equal(f"{flavor}: parameters", run.result["num_parameters"], parameters)
    report.equal(f"{flavor}: parameters as transformers counts", run.result["num_parameters"], model.num_parameters())


def main():
    args = titan.arguments(__doc__.splitlines()[0])
    transformers.utils.logging.disable_progress_bar()
    report = titan.Report()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in CASES:
            judge_case(args, report, name, folder / name.replace(" ", "_").replace(",", ""))
        judge_training(args, report, "deepseek_v3", V3, folder / "training_v3")
        judge_training(args, report, "deepseek_v2", V2, folder / "training_v2")
        for flavor in PUBLISHED:
            judge_flavor(args, report, flavor, folder / flavor)
    report.finish()


if __name__ == "__main__":
    main()
