"""Lets Hugging Face transformers (eager attention) judge the model gpt_oss.

    gpt_oss_referee.py --probe <llama_probe> --plugins <folder>

For random tiny models in fp32: logits, loss and all gradients, with weights that Titan initialises (exported to a folder that
from_pretrained reads) and with wider ones; which experts each token goes to, as integers, in fp64; ten steps of AdamW beside
torch's; sizes and names of the published flavors. Sequences are longer than the window. Controls show that the comparison can fail.
"""

import json
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, GptOssConfig, GptOssForCausalLM

import titan_referee as titan
from mixture_referee import ROWS, SEQ_LEN, VOCAB, choose_batch, load

LOSS, GRADIENTS, LOGITS = 1e-6, 1e-5, 1e-5
LOGITS_OF_WIDE_WEIGHTS = 1e-4  # sharp attention magnifies rounding on both sides
TINY = {"dim": 64, "n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "vocab_size": VOCAB, "num_experts": 8,
        "top_k": 2, "moe_hidden_dim": 48, "sliding_window_size": 20, "original_seq_len": 32}
CASES = {
    "two of eight": TINY,
    "four of four, one key head": TINY | {"num_experts": 4, "top_k": 4, "n_kv_heads": 1},
    "a window beyond the row": TINY | {"sliding_window_size": 128, "rope_theta": 1e4, "rope_factor": 4.0},
    "tight limits": TINY | {"swiglu_limit": 1.25, "head_dim": 32, "norm_eps": 1e-6},
}
PUBLISHED = {  # what their config.json files say, and parameters by torchtitan's count
    "20b": ({"num_hidden_layers": 24, "num_local_experts": 32}, 20_914_757_184),
    "120b": ({"num_hidden_layers": 36, "num_local_experts": 128}, 116_829_156_672),
}
COMMON = {"hidden_size": 2880, "intermediate_size": 2880, "head_dim": 64, "num_attention_heads": 64, "num_key_value_heads": 8,
          "vocab_size": 201088, "num_experts_per_tok": 4, "sliding_window": 128, "rms_norm_eps": 1e-5, "attention_bias": True,
          "max_position_embeddings": 131072, "swiglu_limit": 7.0, "tie_word_embeddings": False, "hidden_act": "silu"}
WHOLE = {"model.embed_tokens.weight": "tok_embeddings.weight", "model.norm.weight": "norm.weight", "lm_head.weight": "output.weight"}
BLOCK = {"mlp.router.weight": "moe.router.gate.weight", "mlp.router.bias": "moe.router.gate.bias",
         "input_layernorm.weight": "attention_norm.weight", "post_attention_layernorm.weight": "ffn_norm.weight",
         "self_attn.sinks": "attention.sinks"}
BLOCK |= {f"self_attn.{one}_proj.{part}": f"attention.w{one}.{part}" for one in "qkvo" for part in ("weight", "bias")}


def in_memory(ours, names):
    """Of our tensors by our names, transformers' by `names`: gates and ups of an expert take turns, matrices are transposed."""
    found = {}
    for name in names:
        if name in WHOLE:
            found[name] = ours[WHOLE[name]]
            continue
        layer, rest = name.removeprefix("model.layers.").split(".", 1)
        block = f"layers.{layer}."
        if rest in BLOCK:
            found[name] = ours[block + BLOCK[rest]]
            continue
        experts = block + "moe.experts."
        part = "_bias" if rest.endswith("_bias") else ""
        if "gate_up" in rest:
            both = torch.stack([ours[f"{experts}w1{part}"], ours[f"{experts}w3{part}"]], dim=2).flatten(1, 2)
        else:
            both = ours[f"{experts}w2{part}"]
        found[name] = both if part else both.transpose(1, 2)
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
        if rest in BLOCK:
            found[block + BLOCK[rest]] = tensor
            continue
        experts, part = block + "moe.experts.", "_bias" if rest.endswith("_bias") else ""
        rows = tensor if part else tensor.transpose(1, 2)
        if "gate_up" in rest:
            found[f"{experts}w1{part}"], found[f"{experts}w3{part}"] = rows[:, ::2], rows[:, 1::2]
        else:
            found[f"{experts}w2{part}"] = rows
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
    ours = in_memory(run.tensors("gradients"), theirs)
    # a bias of keys adds the same to all scores of a query: but for rounding, and sinks, it has no gradient
    judged = [name for name in theirs if theirs[name].abs().max() > 1e-4]
    report.at_most(f"{what}: gradients too small to judge", len(theirs) - len(judged), model.config.num_hidden_layers)
    worst = max(judged, key=lambda name: titan.relative(ours[name], theirs[name]))
    report.at_most(f"{what}: gradients, worst relative ({worst})", titan.relative(ours[worst], theirs[worst]), GRADIENTS)


def controls(report, run, model, tokens):
    """What mistakes would change, by the referee's own model."""
    logits = run.logits(ROWS, SEQ_LEN, VOCAB)
    layer = model.model.layers[1]

    def change(what, tensor, edit):
        before = tensor.data.clone()
        tensor.data = edit(before)
        with torch.no_grad():
            report.at_least(f"control: {what}, max abs", titan.max_abs(model(tokens, use_cache=False).logits, logits),
                            10 * LOGITS_OF_WIDE_WEIGHTS)
        tensor.data = before

    change("no sinks", layer.self_attn.sinks, lambda x: torch.full_like(x, -1e9))
    change("gate and up exchanged", layer.mlp.experts.gate_up_proj, lambda x: x.unflatten(2, (-1, 2)).flip(3).flatten(2))
    change("no bias of the last product", layer.mlp.experts.down_proj_bias, torch.zeros_like)
    change("no bias of the output", layer.self_attn.o_proj.bias, torch.zeros_like)


def judge_routing(args, report, what, job, folder, model, tokens):
    """In fp64 nothing but equal scores can part the choices."""
    run = titan.Run(args, job | {"dtype": "float64", "outputs": ["layers.*.moe.router.choice"]}, folder)
    model = model.double()
    chosen = []
    hooks = [layer.mlp.router.register_forward_hook(lambda _, __, out: chosen.append(out[-1])) for layer in model.model.layers]
    with torch.no_grad():
        model(tokens, use_cache=False)
    for hook in hooks:
        hook.remove()
    for number, theirs in enumerate(chosen):
        ours = titan.read_integers(run.folder / f"outputs/layers.{number}.moe.router.choice.bin", theirs.shape)
        report.at_most(f"{what}: choices that differ in layer {number}",
                       (ours.sort(-1).values != theirs.sort(-1).values).sum().item(), 0)


def judge_case(args, report, name, folder):
    tokens, labels = choose_batch(1, torch.Generator().manual_seed(len(name)))
    job = {"model": "gpt_oss", "seq_len": SEQ_LEN, "seed": 7, "options": CASES[name], "batches": 1, "rows": ROWS,
           "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels)}
    ours = titan.Run(args, job, folder / "ours")
    (folder / "hf").mkdir()
    (folder / "hf/config.json").write_text(json.dumps(ours.result["hf_config"]))
    with torch.device("meta"):
        names = dict(AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder / "hf")).named_parameters())
    stored = {their: tensor.contiguous() for their, tensor in in_memory(ours.tensors("parameters"), names).items()}
    save_file(stored, folder / "hf/model.safetensors", metadata={"format": "pt"})
    model = load(GptOssForCausalLM, folder / "hf", report, name)
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
    if name == "two of eight":
        controls(report, theirs, model, tokens[0])
    judge_routing(args, report, name, job, folder / "routing", model, tokens[0])


def judge_training(args, report, folder):
    steps = 10
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(16, (steps, ROWS, SEQ_LEN), generator=generator)  # few distinct ids: the loss falls quickly
    labels = tokens.roll(-1, dims=2)
    labels[..., -1] = -100
    job = {"model": "gpt_oss", "seq_len": SEQ_LEN, "seed": 11, "options": TINY, "batches": steps, "rows": ROWS,
           "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
           "labels": titan.write_tensor(folder / "labels.bin", labels),
           "optimizer": {"name": "AdamW", "steps": steps, "max_norm": 1.0,
                         "options": {"lr": 8e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}}}
    run = titan.Run(args, job, folder / "ours")
    model = GptOssForCausalLM(GptOssConfig.from_dict(
        run.result["hf_config"] | {"attn_implementation": "eager", "experts_implementation": "eager"})).float()
    with torch.no_grad():
        for name, tensor in in_memory(run.tensors("parameters"), dict(model.named_parameters())).items():
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
        report.at_most(f"AdamW: loss of step {step + 1} ({expected:.5f})", abs(found - expected), 1e-5)
    report.at_most("AdamW: gradient norms, worst relative",
                   max(abs(found / expected - 1) for found, expected in zip(run.result["norms"], norms, strict=True)), 1e-5)
    report.at_least("AdamW: the loss fell by", losses[0] - losses[-1], 0.1)


def judge_flavor(args, report, flavor, folder):
    run = titan.Run(args, {"model": "gpt_oss", "flavor": flavor, "seq_len": 2048}, folder)
    (folder / "config.json").write_text(json.dumps(run.result["hf_config"]))
    config = AutoConfig.from_pretrained(folder)
    expected, parameters = PUBLISHED[flavor]
    for key, value in (COMMON | expected).items():
        report.equal(f"{flavor}: {key}", getattr(config, key), value)
    report.equal(f"{flavor}: theta", config.rope_parameters["rope_theta"], 150000.0)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
        ours = {name: torch.empty(shape) for name, shape in run.shapes.items()}
    theirs = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
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
        judge_training(args, report, folder / "training")
        for flavor in PUBLISHED:
            judge_flavor(args, report, flavor, folder / flavor)
    report.finish()


if __name__ == "__main__":
    main()
