#!/usr/bin/env python3
"""Makes the bundled tokenizer, tests/assets/tokenizer: a byte-level BPE in Llama 3's shape.

    .venv/bin/python tools/make_tokenizer.py [--corpus FILE] [--output FOLDER] [--vocab-size N]

Hugging Face's `tokenizers` (requirements-test.txt) trains it on the bundled corpus and writes it, so
Titan's engine reads files of independent software. The same corpus and version give the same bytes.
Run by hand to renew the tokenizer, and by tests that need one of another size.
"""

import argparse
import json
import pathlib

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOS, EOS = "<|begin_of_text|>", "<|end_of_text|>"
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def read_texts(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def train(texts, vocab_size):
    """Ids as in Llama 3: ordinary tokens first, then special tokens; `vocab_size` counts both."""
    specials = [AddedToken(t, special=True, normalized=False) for t in (BOS, EOS)]
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3_PATTERN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens(specials)
    if tokenizer.get_vocab_size() != vocab_size:
        found = tokenizer.get_vocab_size()
        raise SystemExit(f"error: the corpus is too small: it gives {found} of {vocab_size} tokens")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A",
        pair=f"{BOS} $A {BOS}:1 $B:1",
        special_tokens=[(BOS, tokenizer.token_to_id(BOS))],
    )
    return tokenizer


def settings(tokenizer):
    """The content of tokenizer_config.json."""
    flags = ("lstrip", "normalized", "rstrip", "single_word")
    special = {**dict.fromkeys(flags, False), "special": True}
    return {
        "add_bos_token": True,
        "add_eos_token": False,
        "added_tokens_decoder": {
            str(tokenizer.token_to_id(t)): {"content": t, **special} for t in (BOS, EOS)
        },
        "bos_token": BOS,
        "clean_up_tokenization_spaces": False,
        "eos_token": EOS,
        "model_input_names": ["input_ids", "attention_mask"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    assets = ROOT / "tests/assets"
    parser.add_argument(
        "--corpus", type=pathlib.Path, default=assets / "corpus/train.jsonl", metavar="FILE"
    )
    parser.add_argument(
        "--output", type=pathlib.Path, default=assets / "tokenizer", metavar="FOLDER"
    )
    parser.add_argument("--vocab-size", type=int, default=2048, metavar="N")
    arguments = parser.parse_args()

    tokenizer = train(read_texts(arguments.corpus), arguments.vocab_size)
    arguments.output.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(arguments.output / "tokenizer.json"), pretty=True)
    with open(arguments.output / "tokenizer_config.json", "w", encoding="utf-8") as out:
        out.write(json.dumps(settings(tokenizer), indent=2, ensure_ascii=False) + "\n")
    print(
        f"tokenizers {tokenizers.__version__}: {tokenizer.get_vocab_size()} tokens, "
        f"{BOS} = {tokenizer.token_to_id(BOS)}, {EOS} = {tokenizer.token_to_id(EOS)}"
    )


if __name__ == "__main__":
    main()
