"""Which of transformers' tensors is which of ours, as its models keep them in memory and as Hugging Face's files do. A referee says
what its model has of its own."""

import torch

WHOLE = {"model.embed_tokens.weight": "tok_embeddings.weight", "model.norm.weight": "norm.weight",
         "lm_head.weight": "output.weight"}
# of a layer, without ".weight": transformers' -> ours
LLAMA = {"input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm"}
LLAMA |= {f"self_attn.{one}_proj": f"attention.w{one}" for one in "qkvo"}
HEAD_NORMS = {f"self_attn.{one}_norm": f"attention.{one}_norm" for one in "qk"}
BIAS = "expert_bias"  # of the choice: not trained, and few formats have a place for it


def swiglu(theirs, ours):
    return {f"{theirs}.{their}_proj": f"{ours}.{our}" for their, our in (("gate", "w1"), ("up", "w3"), ("down", "w2"))}


class ModelNames:
    block = LLAMA  # of tensors of a layer that are the same on both sides, without ".weight" or ".bias" where both have it

    def join(self, part, own, config):
        """The tensor of a layer that they call `part` and `block` does not know, made of ours: `own` gives one by its name in the
        layer. Here as for most of their models, which keep gates and ups of all experts in one."""
        if part == "mlp.experts.gate_up_proj":
            return torch.cat([own("moe.experts.w1"), own("moe.experts.w3")], dim=1)
        return own({"mlp.experts.down_proj": "moe.experts.w2"}[part])

    def split(self, part, tensor, config):
        """The other way round: ours by name."""
        if part == "mlp.experts.gate_up_proj":
            return dict(zip(("moe.experts.w1", "moe.experts.w3"), tensor.chunk(2, dim=1), strict=True))
        return {{"mlp.experts.down_proj": "moe.experts.w2"}[part]: tensor}

    def weights_of(self, model):
        """What of transformers' model has a counterpart here, by name."""
        return dict(model.named_parameters())

    def _same(self, part):
        stem, _, end = part.rpartition(".")
        return self.block.get(part) or (f"{self.block[stem]}.{end}" if stem in self.block else None)

    def to_theirs(self, ours, names, config):
        """Of our tensors by our names, transformers' by `names`."""
        found = {}
        for name in names:
            if name in WHOLE:
                found[name] = ours[WHOLE[name]]
                continue
            layer, part = name.removeprefix("model.layers.").split(".", 1)
            same = self._same(part)
            found[name] = ours[f"layers.{layer}.{same}"] if same else self.join(
                part, lambda own, layer=layer: ours[f"layers.{layer}.{own}"], config)
        return found

    def to_ours(self, theirs, config):
        """The other way round."""
        found = {}
        for name, tensor in theirs.items():
            if name in WHOLE:
                found[WHOLE[name]] = tensor
                continue
            layer, part = name.removeprefix("model.layers.").split(".", 1)
            same = self._same(part)
            found |= {f"layers.{layer}.{own}": tensor
                      for own, tensor in ({same: tensor} if same else self.split(part, tensor, config)).items()}
        return {name: tensor.contiguous() for name, tensor in found.items()}

    def stored(self, name, run):
        """Our tensors of case `name` as Hugging Face's files have them, by the plugin's rules: matrices of experts on their own."""
        found = {}
        for ours, tensor in run.tensors("parameters").items():
            rules = [rule["theirs"] for rule in run.result["name_rules"] if rule["ours"] == ours]
            if ".experts." in ours:
                found |= {theirs: part.clone() for theirs, part in zip(rules, tensor, strict=True)}
            elif rules or not ours.endswith(BIAS):
                found[rules[0]] = tensor
        return found
