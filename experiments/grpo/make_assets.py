"""Writes the assets for training on sums into a folder: a byte tokenizer, answers to ten sums in eleven (train.jsonl) for the supervised
start, and the other sums as prompts (held_out.jsonl). Of four answers in train.jsonl one is right and three are one
too high, so the start has learned to add but prefers a wrong answer.

    python3 experiments/grpo/make_assets.py FOLDER
"""

import json
import pathlib
import random
import sys


def byte_letters():
    """The letter that Hugging Face's ByteLevel uses for each byte, printable bytes first."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    return [chr(byte) for byte in printed] + [chr(256 + i) for i in range(len(others))]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    vocab = {letter: i for i, letter in enumerate(byte_letters())}
    end = len(vocab)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": byte_level,
        "post_processor": None, "decoder": byte_level,
        "added_tokens": [{"id": end, "content": "<eos>", "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
        "model": {"type": "BPE", "vocab": {**vocab, "<eos>": end}, "merges": []}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<eos>", "tokenizer_class": "PreTrainedTokenizerFast"}))

    sums = [(a, b) for a in range(10, 100) for b in range(10, 100)]
    held_out = [(a, b) for a, b in sums if (7 * a + 3 * b) % 11 == 0]
    trained = [(a, b, a + b + error) for a, b in sorted(set(sums) - set(held_out)) for error in (0, 1, 1, 1)]
    random.Random(0).shuffle(trained)
    (folder / "held_out.jsonl").write_text("".join(json.dumps({"prompt": f"{a}+{b}="}) + "\n" for a, b in held_out))
    (folder / "train.jsonl").write_text("".join(json.dumps({"text": f"{a}+{b}={answer:03d}"}) + "\n" for a, b, answer in trained))


if __name__ == "__main__":
    main()
