"""Maps transformers' tensor names to Titan's, both for models in memory and for Hugging Face files. Each referee adds
the names of its model."""

import torch

WHOLE = {"model.embed_tokens.weight": "tok_embeddings.weight", "model.norm.weight": "norm.weight",
         "lm_head.weight": "output.weight"}
# tensors of a layer, without ".weight": transformers' -> Titan's
LLAMA = {"input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm"}
LLAMA |= {f"self_attn.{one}_proj": f"attention.w{one}" for one in "qkvo"}
HEAD_NORMS = {f"self_attn.{one}_norm": f"attention.{one}_norm" for one in "qk"}
BIAS = "expert_bias"  # of the router: not trained, and few formats have a place for it


def swiglu(theirs, ours):
    return {f"{theirs}.{their}_proj": f"{ours}.{our}" for their, our in (("gate", "w1"), ("up", "w3"), ("down", "w2"))}


class ModelNames:
    block = LLAMA  # tensors of a layer that are the same on both sides, without ".weight" or ".bias" if both have it

    def join(self, part, own, config):
        """transformers' tensor `part` of a layer if `block` does not have it, made from Titan's; `own` returns one of
        these by its name in the layer. The default fits most models: they store gates and ups of all experts in one
        tensor."""
        if part == "mlp.experts.gate_up_proj":
            return torch.cat([own("moe.experts.w1"), own("moe.experts.w3")], dim=1)
        return own({"mlp.experts.down_proj": "moe.experts.w2"}[part])

    def split(self, part, tensor, config):
        """The reverse: Titan's tensors by name."""
        if part == "mlp.experts.gate_up_proj":
            return dict(zip(("moe.experts.w1", "moe.experts.w3"), tensor.chunk(2, dim=1), strict=True))
        return {{"mlp.experts.down_proj": "moe.experts.w2"}[part]: tensor}

    def weights_of(self, model):
        """The tensors of transformers' model that have a counterpart in Titan, by name."""
        return dict(model.named_parameters())

    def _same(self, part):
        stem, _, end = part.rpartition(".")
        return self.block.get(part) or (f"{self.block[stem]}.{end}" if stem in self.block else None)

    def to_theirs(self, ours, names, config):
        """transformers' tensors `names` from Titan's tensors by Titan's names."""
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
        """The reverse."""
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
        """Titan's tensors of case `name` in the form of Hugging Face files, by the plugin's rules, with separate
        matrices of experts."""
        found = {}
        for ours, tensor in run.tensors("parameters").items():
            rules = [rule["theirs"] for rule in run.result["name_rules"] if rule["ours"] == ours]
            if ".experts." in ours:
                found |= {theirs: part.clone() for theirs, part in zip(rules, tensor, strict=True)}
            elif rules or not ours.endswith(BIAS):
                found[rules[0]] = tensor
        return found
