"""transformers' Llama with the weights of a Titan checkpoint, and token files whose rows both read alike. Used by tests that compare the
training of a changed Llama with PyTorch."""

import os

import before_transformers

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # transformers compiles parts of BitNet

import numpy
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

SEQ_LEN, ROWS, VOCAB = 64, 2, 2048
PARTS = {"attention.wq": "self_attn.q_proj", "attention.wk": "self_attn.k_proj", "attention.wv": "self_attn.v_proj",
         "attention.wo": "self_attn.o_proj", "feed_forward.w1": "mlp.gate_proj", "feed_forward.w2": "mlp.down_proj",
         "feed_forward.w3": "mlp.up_proj", "attention_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
ENDS = {"tok_embeddings.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}


def drawn_tokens(folder, steps):
    """Flags of `titan train` that read a file of drawn tokens, and the tokens (steps, ROWS, SEQ_LEN + 1) in the order of training."""
    ids = numpy.random.default_rng(7).integers(0, VOCAB, (steps, ROWS, SEQ_LEN + 1))
    path = folder / "tokens.bin"
    path.write_bytes(ids.astype("<u2").tobytes())
    return (["--training.dataset", "tokens", "--training.dataset_path", path, "--dataset.tokens.format", "raw",
             "--dataset.tokens.chunk_tokens", SEQ_LEN + 1, "--training.seq_len", SEQ_LEN, "--training.local_batch_size", ROWS,
             "--training.global_batch_size", ROWS, "--training.steps", steps], torch.from_numpy(ids))


def llama_of(checkpoint, dtype, **sizes):
    """transformers' Llama with the weights of `checkpoint`, a folder that one rank has written."""
    weights = {}
    for path in sorted(checkpoint.glob("*.safetensors")):
        weights |= {name: tensor for name, tensor in load_file(path).items() if not name.startswith("optim.")}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB, rms_norm_eps=1e-5, tie_word_embeddings=False, attn_implementation="eager",
                                         rope_parameters={"rope_theta": 500000.0, "rope_type": "default"}, **sizes)).to(dtype)
    named = {}
    for name, tensor in weights.items():
        if name in ENDS:
            named[ENDS[name]] = tensor
            continue
        _, number, part = name.removesuffix(".weight").split(".", 2)
        named[f"model.layers.{number}.{PARTS[part]}.weight"] = tensor
    model.load_state_dict(named)
    return model


def loss_of(model, rows):
    """The mean cross entropy of rows (ROWS, SEQ_LEN + 1)."""
    logits = model(rows[:, :-1]).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
