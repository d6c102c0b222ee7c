"""Lets Hugging Face transformers (eager attention) judge the model llama4.

    llama4_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models in fp32, as torchtitan v0.2.2 has them and as they were published (chunks shorter than the sequence, layers
without positions, norms of queries and keys, the temperature of queries): logits, loss and all gradients, with weights that Titan
initialises (exported to a folder that from_pretrained reads) and with wider ones that transformers initialises; which experts each
token goes to, as integers, in fp64; ten steps of AdamW beside torch's; sizes and names of the flavors. Controls show that the
comparison can fail.
"""

import json
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, Llama4ForCausalLM, Llama4TextConfig

import titan_referee as titan

LOSS, GRADIENTS, LOGITS = 1e-6, 1e-5, 1e-5
LOGITS_OF_WIDE_WEIGHTS = 1e-4  # sharp attention magnifies rounding on both sides
VOCAB, ROWS, SEQ_LEN, CHUNK = 128, 2, 96, 40
TINY = {"dim": 64, "n_layers": 4, "n_heads": 4, "n_kv_heads": 2, "vocab_size": VOCAB, "hidden_dim": 96, "moe_hidden_dim": 48,
        "num_experts": 8}
# the wavelengths of heads of 16 elements lie on both sides of the one end
SCALED = {"rope_scaling": {"scaling_factor": 16.0, "original_max_position_embeddings": 2048}}
IROPE = {"every_n_layers_nope": 4, "attention_chunk_size": CHUNK}
PUBLISHED = IROPE | {"nope_layer_offset": 3, "attn_temperature_tuning": True, "floor_scale": 16}
SCOUT = TINY | PUBLISHED | SCALED | {"use_qk_norm": True, "interleave_moe_layer_step": 1}
CASES = {
    "as in v0.2.2": TINY,
    "as in v0.2.2, experts everywhere": TINY | SCALED | {"interleave_moe_layer_step": 1},
    "as in v0.2.2, irope": TINY | IROPE | SCALED,
    "Scout": SCOUT,
    "Maverick": TINY | PUBLISHED,
    "three of eight": SCOUT | {"top_k": 3},
    "wide heads, tied": SCOUT | {"head_dim": 32, "n_kv_heads": 1, "enable_weight_tying": True, "norm_eps": 1e-6},
}
SIZES = {"hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers": 48,
         "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048, "num_experts_per_tok": 1,
         "rms_norm_eps": 1e-5}
SCOUT_SIZES = SIZES | {"num_local_experts": 16, "interleave_moe_layer_step": 1, "max_position_embeddings": 10485760,
                       "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 16.0, "low_freq_factor": 1.0,
                                           "high_freq_factor": 1.0, "original_max_position_embeddings": 8192}}
MAVERICK_SIZES = SIZES | {"num_local_experts": 128, "interleave_moe_layer_step": 2, "max_position_embeddings": 1048576,
                          "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}
ALIKE = {"use_qk_norm": False, "attn_temperature_tuning": False, "no_rope_layers": [1] * 48, "layer_types": ["full_attention"] * 48}
IROPE_48 = {"use_qk_norm": False, "attn_temperature_tuning": False, "no_rope_layers": [int(i % 4 != 0) for i in range(48)]}
FLAVORS = {  # what describes them to transformers, and parameters by torchtitan's count
    "Scout": (SCOUT_SIZES, 107_769_861_120),
    "Maverick": (MAVERICK_SIZES | {"use_qk_norm": False}, 400_711_848_960),
    "17bx16e": (SCOUT_SIZES | ALIKE | {"attention_chunk_size": 10485760}, 107_769_861_120),
    "17bx128e": (MAVERICK_SIZES | ALIKE | {"attention_chunk_size": 1048576}, 400_711_848_960),
    "17bx16e_irope": (SCOUT_SIZES | IROPE_48, 107_769_861_120),
    "17bx128e_irope": (MAVERICK_SIZES | IROPE_48, 400_711_848_960),
}


def choose_batch(count, generator, distinct=VOCAB):
    """Random ids and the ids that follow; the last of each row and every tenth have no target."""
    tokens = torch.randint(distinct, (count, ROWS, SEQ_LEN), generator=generator)
    labels = tokens.roll(-1, dims=2)
    labels[..., -1] = -100
    labels[torch.rand(labels.shape, generator=generator) < 0.1] = -100
    return tokens, labels


def to_pairs(rows, heads):
    """Rows of heads whose halves rotate together, in the order in which neighbours do."""
    return rows.view(heads, 2, -1, rows.shape[-1]).transpose(1, 2).reshape(rows.shape)


def to_halves(rows, heads):
    return rows.view(heads, -1, 2, rows.shape[-1]).transpose(1, 2).reshape(rows.shape)


def to_theirs(ours, config):
    """Our tensors as transformers' model has them, by its names."""
    found = {}
    for name, tensor in ours.items():
        if not name.startswith("layers."):
            found[{"tok_embeddings.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight",
                   "output.weight": "lm_head.weight"}[name]] = tensor
            continue
        layer, rest = name.removeprefix("layers.").split(".", 1)
        block = f"model.layers.{layer}."
        if rest in ("attention_norm.weight", "ffn_norm.weight"):
            found[block + {"a": "input_layernorm.weight", "f": "post_attention_layernorm.weight"}[rest[0]]] = tensor
        elif rest.startswith("attention."):
            one = rest.removeprefix("attention.w")[0]
            heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads}.get(one)
            found[f"{block}self_attn.{one}_proj.weight"] = to_pairs(tensor, heads) if heads else tensor
        elif rest == "moe.router.gate.weight":
            found[block + "feed_forward.router.weight"] = tensor
        elif rest == "moe.experts.w1":
            both = torch.cat([tensor.transpose(1, 2), ours[f"layers.{layer}.moe.experts.w3"].transpose(1, 2)], dim=2)
            found[block + "feed_forward.experts.gate_up_proj"] = both
        elif rest == "moe.experts.w2":
            found[block + "feed_forward.experts.down_proj"] = tensor.transpose(1, 2).contiguous()
        elif rest != "moe.experts.w3":
            where, part = rest.removesuffix(".weight").rsplit(".", 1)
            inner = {"moe.shared_experts": "shared_expert.", "feed_forward": ""}[where]
            projection = {"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"}[part]
            found[f"{block}feed_forward.{inner}{projection}.weight"] = tensor
    return found


def to_ours(model):
    """The other way round: our tensors of transformers' model in memory."""
    config, found = model.config, {}
    for name, weight in model.named_parameters():
        tensor = weight.detach()
        if not name.startswith("model.layers."):
            found[{"model.embed_tokens.weight": "tok_embeddings.weight", "model.norm.weight": "norm.weight",
                   "lm_head.weight": "output.weight"}[name]] = tensor
            continue
        layer, rest = name.removeprefix("model.layers.").split(".", 1)
        block = f"layers.{layer}."
        if "layernorm" in rest:
            found[block + ("attention_norm.weight" if rest.startswith("input") else "ffn_norm.weight")] = tensor
        elif rest.startswith("self_attn."):
            one = rest.removeprefix("self_attn.")[0]
            heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads}.get(one)
            found[f"{block}attention.w{one}.weight"] = to_halves(tensor, heads) if heads else tensor
        elif rest == "feed_forward.router.weight":
            found[block + "moe.router.gate.weight"] = tensor
        elif rest == "feed_forward.experts.gate_up_proj":
            gates, ups = tensor.chunk(2, dim=2)
            found[block + "moe.experts.w1"], found[block + "moe.experts.w3"] = gates.transpose(1, 2), ups.transpose(1, 2)
        elif rest == "feed_forward.experts.down_proj":
            found[block + "moe.experts.w2"] = tensor.transpose(1, 2)
        else:
            projection = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}[rest.removesuffix(".weight").rsplit(".", 1)[1]]
            where = "moe.shared_experts" if "shared_expert" in rest else "feed_forward"
            found[f"{block}{where}.{projection}.weight"] = tensor
    return {name: tensor.contiguous() for name, tensor in found.items()}


def compare(report, what, run, model, tokens, labels, limit):
    logits = model(tokens, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    model.zero_grad()
    loss.backward()
    report.at_least(f"{what}: largest logit", logits.abs().max().item(), 0.5)
    report.at_most(f"{what}: logits, max abs", titan.max_abs(run.logits(ROWS, SEQ_LEN, VOCAB), logits.detach()), limit)
    report.at_most(f"{what}: loss, relative", abs(run.result["loss_sum"] / loss.item() - 1), LOSS)
    theirs = {name: weight.grad for name, weight in model.named_parameters()}
    ours = to_theirs(run.tensors("gradients"), model.config)
    report.equal(f"{what}: gradients", sorted(ours), sorted(theirs))
    worst = max(theirs, key=lambda name: titan.relative(ours[name], theirs[name]))
    report.at_most(f"{what}: gradients, worst relative ({worst})", titan.relative(ours[worst], theirs[worst]), GRADIENTS)


def controls(report, run, model, tokens):
    """What mistakes would change, by the referee's own model."""
    logits = run.logits(ROWS, SEQ_LEN, VOCAB)
    attention = [layer.self_attn for layer in model.model.layers]
    experts = [layer.feed_forward.experts for layer in model.model.layers]

    def change(what, edit, undo):
        edit()
        with torch.no_grad():
            report.at_least(f"control: {what}, max abs", titan.max_abs(model(tokens, use_cache=False).logits, logits),
                            10 * LOGITS_OF_WIDE_WEIGHTS)
        undo()

    def set_chunk(size):
        model.config.attention_chunk_size = size

    def set_temperature(on):
        attention[3].attn_temperature_tuning = on

    def set_norm(eps):
        for layer in attention[:3]:
            layer.qk_norm.eps = eps

    def set_rope(on):
        attention[3].use_rope = on

    def roll(by):
        for layer in experts:
            layer.gate_up_proj.data = layer.gate_up_proj.data.roll(by, dims=2)

    def normalise_first(layer):
        layer.qk_norm_kept = layer.qk_norm
        del layer.qk_norm

    def normalise_again(layer):
        layer.qk_norm = layer.qk_norm_kept
        del layer.qk_norm_kept

    change("a longer chunk", lambda: set_chunk(CHUNK + 1), lambda: set_chunk(CHUNK))
    change("no temperature", lambda: set_temperature(False), lambda: set_temperature(True))
    change("another epsilon of queries and keys", lambda: set_norm(0.3), lambda: set_norm(1e-5))
    change("positions in the last layer", lambda: set_rope(True), lambda: set_rope(False))
    change("no norm of queries and keys", lambda: normalise_first(attention[0]), lambda: normalise_again(attention[0]))
    change("gate and up exchanged", lambda: roll(48), lambda: roll(48))


def judge_routing(args, report, what, job, folder, model, tokens):
    """In fp64 nothing but equal scores can part the choices; our own come from the probe's model in double."""
    run = titan.Run(args, job | {"dtype": "float64", "outputs": ["layers.*.moe.router.choice"]}, folder)
    model = model.double()
    chosen = {}
    hooks = [layer.feed_forward.router.register_forward_hook(
        lambda router, __, out, i=i: chosen.__setitem__(i, out[1].topk(router.top_k, dim=1).indices))
        for i, layer in enumerate(model.model.layers) if layer.is_moe_layer]
    with torch.no_grad():
        model(tokens, use_cache=False)
    for hook in hooks:
        hook.remove()
    report.at_least(f"{what}: layers with experts", len(chosen), 2)
    for number, theirs in chosen.items():
        ours = titan.read_integers(run.folder / f"outputs/layers.{number}.moe.router.choice.bin", theirs.shape)
        report.at_most(f"{what}: choices that differ in layer {number}",
                       (ours.sort(-1).values != theirs.sort(-1).values).sum().item(), 0)
        counts = torch.bincount(theirs.flatten(), minlength=job["options"]["num_experts"])
        report.at_least(f"{what}: most tokens of an expert over even load in layer {number}",
                        counts.max().item() / counts.double().mean().item(), 1.01)


def judge_case(args, report, name, folder):
    options = CASES[name]
    tokens, labels = choose_batch(1, torch.Generator().manual_seed(len(name)))
    job = {"model": "llama4", "seq_len": SEQ_LEN, "seed": 7, "options": options, "batches": 1, "rows": ROWS,
           "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels)}
    ours = titan.Run(args, job, folder / "ours")
    (folder / "hf").mkdir()
    (folder / "hf/config.json").write_text(json.dumps(ours.result["hf_config"]))
    config = AutoConfig.from_pretrained(folder / "hf")
    stored = to_theirs(ours.tensors("parameters"), config)
    named = {rule["theirs"] for rule in ours.result["name_rules"]}
    plain = {theirs for theirs in named if not theirs.startswith("language_model.")}
    report.equal(f"{name}: names by the rules", sorted(plain - {"lm_head.weight"}), sorted(stored.keys() - {"lm_head.weight"}))
    report.equal(f"{name}: names with the prefix", sorted(named - plain), sorted("language_model." + theirs for theirs in plain))
    save_file({theirs: tensor.contiguous() for theirs, tensor in stored.items()}, folder / "hf/model.safetensors",
              metadata={"format": "pt"})
    model, info = Llama4ForCausalLM.from_pretrained(folder / "hf", dtype=torch.float32, attn_implementation="eager",
                                                    local_files_only=True, output_loading_info=True)
    for names in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        report.equal(f"{name}: {names}", sorted(info[names]), [])
    model = model.eval()
    compare(report, f"{name}, Titan's weights", ours, model, tokens[0], labels[0], LOGITS)

    torch.manual_seed(3)  # wider than any recipe, so that tokens go to their experts decidedly
    with torch.no_grad():
        for parameter_name, weight in model.named_parameters():
            weight.uniform_(0.5, 1.5) if "norm" in parameter_name else weight.normal_(0, 0.15)
    for parameter_name, weight in to_ours(model).items():
        titan.write_tensor(folder / "weights" / f"{parameter_name}.bin", weight)
    job |= {"weights": str(folder / "weights")}
    theirs = titan.Run(args, job, folder / "theirs")
    compare(report, f"{name}, wide weights", theirs, model, tokens[0], labels[0], LOGITS_OF_WIDE_WEIGHTS)
    if name == "Scout":
        controls(report, theirs, model, tokens[0])
    judge_routing(args, report, name, job, folder / "routing", model, tokens[0])


def judge_training(args, report, name, folder):
    steps, what = 10, f"AdamW, {name}"
    tokens, labels = choose_batch(steps, torch.Generator().manual_seed(5), distinct=16)  # few: the loss falls quickly
    job = {"model": "llama4", "seq_len": SEQ_LEN, "seed": 11, "options": CASES[name], "batches": steps, "rows": ROWS,
           "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels),
           "optimizer": {"name": "AdamW", "steps": steps, "max_norm": 1.0,
                         "options": {"lr": 8e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}}}
    run = titan.Run(args, job, folder / "ours")
    model = Llama4ForCausalLM(Llama4TextConfig.from_dict(run.result["hf_config"] | {"attn_implementation": "eager"})).float()
    before = to_theirs(run.tensors("parameters"), model.config)
    with torch.no_grad():
        for theirs, weight in model.named_parameters():
            weight.copy_(before[theirs])
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
    final = to_theirs(run.tensors("final"), model.config)
    moved = {theirs: titan.relative(final[theirs] - before[theirs], weight.detach() - before[theirs])
             for theirs, weight in model.named_parameters()}
    report.at_most(f"{what}: change of weights, worst relative", max(moved.values()), 1e-3)


def judge_flavor(args, report, flavor, folder):
    run = titan.Run(args, {"model": "llama4", "flavor": flavor, "seq_len": 2048}, folder)
    (folder / "config.json").write_text(json.dumps(run.result["hf_config"]))
    config = AutoConfig.from_pretrained(folder)
    described, parameters = FLAVORS[flavor]
    expected = Llama4TextConfig(**described)
    for key in (*SIZES, "num_local_experts", "interleave_moe_layer_step", "max_position_embeddings", "moe_layers", "no_rope_layers",
                "layer_types", "attention_chunk_size", "use_qk_norm", "attn_temperature_tuning", "floor_scale", "attn_scale",
                "tie_word_embeddings", "hidden_act", "attention_bias"):
        report.equal(f"{flavor}: {key}", getattr(config, key), getattr(expected, key))
    report.equal(f"{flavor}: rope", {key: config.rope_parameters.get(key) for key in described["rope_parameters"]},
                 described["rope_parameters"])
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
        ours = {name: torch.empty(shape) for name, shape in run.shapes.items() if not name.endswith("expert_bias")}
    report.equal(f"{flavor}: class", type(model), Llama4ForCausalLM)
    theirs = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    report.equal(f"{flavor}: shapes", {name: tuple(t.shape) for name, t in to_theirs(ours, config).items()}, theirs)
    report.equal(f"{flavor}: parameters", run.result["num_parameters"], model.num_parameters())
    report.equal(f"{flavor}: parameters as torchtitan counts", run.result["num_parameters"], parameters)


def main():
    args = titan.arguments(__doc__.splitlines()[0])
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # it warns of the scaling that Llama 4 has
    report = titan.Report()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for number, name in enumerate(CASES):
            judge_case(args, report, name, folder / f"case_{number}")
        for name in ("as in v0.2.2", "Scout"):
            judge_training(args, report, name, folder / f"training_{name[0]}")
        for flavor in FLAVORS:
            judge_flavor(args, report, flavor, folder / flavor)
    report.finish()


if __name__ == "__main__":
    main()
