"""Computes the entropy of attention with transformers, for a Hugging Face folder's weights and the tokens of the first
steps of a run.

    attention_entropy_referee.py FOLDER TEXTS TOKENIZER ROWS SEQ_LEN STEPS

Prints a JSON list with one list per step: for each layer the mean over rows, heads and queries of -sum p ln p, in nats.
transformers' attention weights have no column for sinks (gpt-oss): the sink's p is the remainder to 1, and counts.
TEXTS is a JSON lines file; row r of ROWS reads its documents r, r + ROWS, ... with BOS and EOS, in sequences of SEQ_LEN
+ 1 tokens.
"""

import json
import pathlib
import sys

import before_transformers

import tokenizers
import torch
import transformers


def tokens_of_steps(texts, folder, rows, seq_len, steps):
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    bos, eos = (tokenizer.token_to_id(settings[name]) for name in ("bos_token", "eos_token"))
    window, streams = seq_len + 1, []
    for row in range(rows):
        ids, documents = [], iter(texts[row::rows])
        while len(ids) < steps * window:
            ids += [bos, *tokenizer.encode(next(documents), add_special_tokens=False).ids, eos]
        streams.append(torch.tensor(ids[:steps * window]).view(steps, window))
    return torch.stack(streams, dim=1)[:, :, :-1]


def entropies(model, tokens):
    has_sinks = any(name.endswith(".sinks") for name, _ in model.named_parameters())
    with torch.no_grad():
        attentions = [weights.double() for weights in model(tokens, use_cache=False, output_attentions=True).attentions]
    of_keys = [torch.special.entr(weights).sum(-1) for weights in attentions]
    of_sinks = [torch.special.entr((1 - weights.sum(-1)).clamp_min(0)) if has_sinks else 0 for weights in attentions]
    return [(keys + sink).mean().item() for keys, sink in zip(of_keys, of_sinks, strict=True)]


def main():
    folder, texts, tokenizer = map(pathlib.Path, sys.argv[1:4])
    rows, seq_len, steps = map(int, sys.argv[4:7])
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                              local_files_only=True).eval()
    lines = [json.loads(line)["text"] for line in texts.read_text().splitlines()]
    print(json.dumps([entropies(model, tokens) for tokens in tokens_of_steps(lines, tokenizer, rows, seq_len, steps)]))


if __name__ == "__main__":
    main()
