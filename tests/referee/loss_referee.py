"""Computes the loss of a run's first step with torch and transformers, and its gradients' norm.

    loss_referee.py FOLDER TEXTS TOKENIZER ROWS SEQ_LEN OPTIONS

FOLDER: weights for transformers. TEXTS, TOKENIZER, ROWS, SEQ_LEN: the tokens, as in attention_entropy_referee.py.
OPTIONS: JSON with label_smoothing, z_loss and logit_softcap. Prints JSON: loss, nll and z_loss per token, and the norm
of all gradients.
"""

import json
import pathlib
import sys

import before_transformers

import tokenizers
import torch
import transformers


def first_windows(texts, folder, rows, seq_len):
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    bos, eos = (tokenizer.token_to_id(settings[name]) for name in ("bos_token", "eos_token"))
    windows = []
    for row in range(rows):
        ids, documents = [], iter(texts[row::rows])
        while len(ids) <= seq_len:
            ids += [bos, *tokenizer.encode(next(documents), add_special_tokens=False).ids, eos]
        windows.append(torch.tensor(ids[:seq_len + 1]))
    return torch.stack(windows)


def main():
    folder, texts, tokenizer = map(pathlib.Path, sys.argv[1:4])
    rows, seq_len = map(int, sys.argv[4:6])
    options = json.loads(sys.argv[6])
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True).train()
    lines = [json.loads(line)["text"] for line in texts.read_text().splitlines()]
    window = first_windows(lines, tokenizer, rows, seq_len)
    cap = options["logit_softcap"]
    logits = torch.tanh(model(window[:, :-1], use_cache=False).logits.flatten(0, 1) / cap) * cap
    labels = window[:, 1:].flatten()
    nll = torch.nn.functional.cross_entropy(logits, labels)
    z_loss = options["z_loss"] * torch.logsumexp(logits, 1).square().mean()
    loss = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=options["label_smoothing"]) + z_loss
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    print(json.dumps({"loss": loss.item(), "nll": nll.item(), "z_loss": z_loss.item(), "norm": norm.item()}))


if __name__ == "__main__":
    main()
