"""Computes hidden states with transformers, for a Hugging Face folder's weights and the tokens of the first steps of a
run.

    hidden_states_referee.py FOLDER TEXTS TOKENIZER ROWS SEQ_LEN STEPS OUT

Writes OUT, an .npz with one float32 array (layers + 1, ROWS, SEQ_LEN, features) for each step, "1", "2", ...: the
result of output_hidden_states. The first entry is the embedding; the last follows the final norm. Texts and rows are
those of attention_entropy_referee.py.
"""

import json
import pathlib
import sys

from attention_entropy_referee import tokens_of_steps

import numpy
import torch
import transformers


def main():
    folder, texts, tokenizer = map(pathlib.Path, sys.argv[1:4])
    rows, seq_len, steps = map(int, sys.argv[4:7])
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                              local_files_only=True).eval()
    lines = [json.loads(line)["text"] for line in texts.read_text().splitlines()]
    found = {}
    with torch.no_grad():
        for step, tokens in enumerate(tokens_of_steps(lines, tokenizer, rows, seq_len, steps), 1):
            states = model(tokens, use_cache=False, output_hidden_states=True).hidden_states
            found[str(step)] = torch.stack(states).numpy()
    numpy.savez(sys.argv[7], **found)


if __name__ == "__main__":
    main()
