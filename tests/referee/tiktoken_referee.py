"""Compares the tokenizer plugin `tiktoken` with the original library.

Makes rank files at test time: the merges of byte-level tokenizers trained with Hugging Face `tokenizers`, and random
ranks, with many ties and pieces that no merges lead to. Encodes nasty strings, random Unicode, source code and the
bundled corpus with tiktoken.Encoding and with Titan; compares every id and every decoded text.

    tiktoken_referee.py --probe <tokenize_probe> [--assets tests/assets] [--seed 1] [--fuzz 2000]
    tiktoken_referee.py --probe <tokenize_probe> --bench

--bench prints MB/s of one thread for Titan and the original library. Speed is not checked.
"""

import argparse
import base64
import json
import pathlib
import random
import re
import sys
import tempfile
import time

import tiktoken
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from tokenizer_families import LLAMA3, O200K
from tokenizer_texts import (INVALID, NASTY, PHRASES, fuzz_strings, made_up_chinese, probe, read_code, read_corpus, show_difference,
                             write_strings)

CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
GAPS = r"\w{2,4}|\d+(?=\D)|[[a-c]x-z]\b|\s+$"  # text that no alternative matches is dropped
LLAMA3_SPECIALS = (["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
                    "<|finetune_right_pad_id|>", "<|reserved_special_token_2|>", "<|start_header_id|>", "<|end_header_id|>",
                    "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"] + [f"<|reserved_special_token_{i}|>" for i in range(3, 248)])


def trained_ranks(texts, vocab_size, pattern):
    """Token bytes in the order of a byte-level BPE's ids. The first 256 are the bytes, shuffled as in real files."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False, initial_alphabet=alphabet))
    byte_of = {}
    others = 0
    for byte in range(256):
        if 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE:
            byte_of[chr(byte)] = byte
        else:
            byte_of[chr(0x100 + others)] = byte
            others += 1
    vocab = json.loads(tokenizer.to_str())["model"]["vocab"]
    return {bytes(byte_of[c] for c in token): id for token, id in vocab.items()}


def random_ranks(rng, texts, count):
    """Pieces of texts with random ranks: few of them can be merged from smaller ones."""
    tokens = set()
    data = [text.encode("utf-8") for text in texts if len(text) > 40]
    while len(tokens) < count:
        text = rng.choice(data)
        begin = rng.randrange(len(text) - 10)
        tokens.add(text[begin:begin + rng.choice([2, 2, 2, 3, 3, 4, 5, 9])])
    tokens = sorted(token for token in tokens if len(token) > 1)
    rng.shuffle(tokens)
    ranks = list(range(256 + len(tokens)))
    rng.shuffle(ranks)
    return dict(zip([bytes([byte]) for byte in range(256)] + tokens, ranks))


def write_ranks(path, ranks):
    with open(path, "wb") as out:
        for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
            out.write(base64.b64encode(token) + b" " + str(rank).encode() + b"\n")


def encodings(rng, training, vocab_size):
    """name, pattern, ranks, special tokens, arguments for the probe"""
    llama3 = trained_ranks(training, vocab_size, Regex(LLAMA3))
    o200k = trained_ranks(training, vocab_size, Regex(O200K))
    n = len(llama3)
    yield "llama3", LLAMA3, llama3, {name: n + i for i, name in enumerate(LLAMA3_SPECIALS)}, []
    specials = {"<|endoftext|>": n + 5, "<|fim_prefix|>": n + 6, "<|fim_middle|>": n + 7, "<|endofprompt|>": n + 20}
    some = ["--special", f"<|endoftext|>={n + 5}", "--special", "<|fim_prefix|>", "--special", "<|fim_middle|>", "--special",
            f"<|endofprompt|>={n + 20}", "--bos", "", "--eos", "<|endoftext|>"]
    yield "cl100k", CL100K, llama3, specials, some
    spread = {token: rank + rank // 6 for token, rank in llama3.items()}  # after every sixth id, one has no token
    n = max(spread.values()) + 1
    yield "unused ids", LLAMA3, spread, {"<|x|>": n, "<|y|>": n + 9}, ["--special", "<|x|>", "--special", f"<|y|>={n + 9}", "--bos", "<|x|>", "--eos", "<|y|>"]
    n = len(o200k)
    yield "o200k", O200K, o200k, {"<|end=|>": n, "<|a_8|>": n + 1, "<|a_9|>": n + 2, "<|a_10|>": n + 3}, [
        "--special", "<|end=|>", "--special", "<|a_{8..10}|>", "--bos", "<|end=|>", "--eos", ""]
    for name, pattern in (("random", LLAMA3), ("random gaps", GAPS), ("random, nothing cut", r"(?s:.+)")):
        ranks = random_ranks(rng, training, 4000)
        n = len(ranks)
        yield name, pattern, ranks, {"<|x|>": n}, ["--special", "<|x|>", "--bos", "<|x|>", "--eos", "<|x|>"]


def compare(options, name, encoding, folder, arguments, strings, lossless):
    texts = [data.decode("utf-8", errors="replace") for data in strings]
    write_strings(folder + "/strings", strings)
    num_ids = 0
    for flags in ([], ["--parse-special"]):
        got = probe(options.probe, folder, folder + "/strings", *arguments, *flags)
        decoded = probe(options.probe, folder, folder + "/strings", "--decode", *arguments, *flags)
        if not len(got) == len(decoded) == len(texts):
            sys.exit(f"{name}: {len(texts)} strings went in, {len(got)} and {len(decoded)} came back")
        special_ids = set(encoding._special_tokens.values())
        for text, ours, our_text in zip(texts, got, decoded):
            ours = [int(i) for i in ours.split()]
            theirs = encoding.encode(text, allowed_special="all") if flags else encoding.encode_ordinary(text)
            num_ids += len(ours)
            if ours != theirs:
                show_difference(f"{name} {' '.join(flags)}", text, ours, theirs, lambda id: encoding.decode_single_token_bytes(id))
            their_text = encoding.decode_bytes([id for id in theirs if id not in special_ids]).decode("utf-8", errors="replace")
            if bytes.fromhex(our_text).decode("utf-8") != their_text:
                sys.exit(f"{name}: decoded texts differ for {text[:200]!r}")
            if lossless and not flags and their_text != text:
                sys.exit(f"{name}: decode(encode(text)) is not the text {text[:200]!r}")
    return num_ids


def check_facts(options, name, folder, arguments, encoding):
    names = dict(zip(arguments[::2], arguments[1::2]))
    ids = [encoding._special_tokens.get(names.get(option, default), -1)
           for option, default in (("--bos", "<|begin_of_text|>"), ("--eos", "<|end_of_text|>"))]
    expected = f"{encoding.n_vocab} {ids[0]} {ids[1]} -1"
    got = probe(options.probe, folder, folder + "/strings", "--facts", "--tiktoken", *arguments)[0]
    if got != expected:
        sys.exit(f"{name}: size, BOS, EOS and pad are '{got}', expected '{expected}'")


def judge(options):
    rng = random.Random(options.seed)
    corpus = read_corpus(options.assets)
    training = corpus[: len(corpus) // 2] + PHRASES * 50 + made_up_chinese(rng, 40)
    nasty = [text.encode("utf-8") for text in NASTY + PHRASES + LLAMA3_SPECIALS[:12]] + INVALID
    nasty.append(b"x<|fim_prefix|>y<|endoftext|> <|a_9|><|x|>")
    megabytes = [text.encode("utf-8") for text in corpus + read_code(1.5) + made_up_chinese(rng, 600)]
    total = 0
    for name, pattern, ranks, specials, arguments in encodings(rng, training, 3000):
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
        strings = nasty + [text.encode("utf-8") for text in fuzz_strings(rng, options.fuzz, None)]
        if name == "random, nothing cut":  # quadratic in the original
            strings = [data for data in strings if len(data) < 5000]
        else:
            strings = strings + megabytes
        with tempfile.TemporaryDirectory() as folder:
            write_ranks(folder + "/tokenizer.model", ranks)
            all_arguments = ["--tiktoken", "--pattern", pattern, *arguments] if name != "llama3" else ["--tiktoken"]
            num_ids = compare(options, name, encoding, folder, all_arguments, strings, "gaps" not in name)
            check_facts(options, name, folder, arguments, encoding)
        total += num_ids
        print(f"{name}: {2 * len(strings)} strings, {num_ids} ids equal", flush=True)
    print(f"all equal: {total} ids")


def bench(options):
    rng = random.Random(options.seed)
    corpus = read_corpus(options.assets)
    strings = [text.encode("utf-8") for text in corpus]
    size = sum(map(len, strings)) / 1e6
    for name, pattern, ranks, specials, arguments in encodings(rng, corpus, options.vocab_size):
        if "random" in name:
            continue
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
        started = time.process_time()
        for text in corpus:
            encoding.encode_ordinary(text)
        original = size / (time.process_time() - started)
        with tempfile.TemporaryDirectory() as folder:
            write_ranks(folder + "/tokenizer.model", ranks)
            write_strings(folder + "/strings", strings)
            lines = probe(options.probe, folder, folder + "/strings", "--bench", "2", "--tiktoken", "--pattern", pattern, *arguments)
        warm = float(re.search(r"warm: ([\d.]+)", lines[-1])[1])
        print(f"{name}: {len(ranks)} ranks, {size:.1f} MB; {'; '.join(lines)}; original {original:.1f} MB/s, ratio {warm / original:.1f}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--assets", default=str(pathlib.Path(__file__).resolve().parents[1] / "assets"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fuzz", type=int, default=2000, help="random strings per encoding")
    parser.add_argument("--vocab-size", type=int, default=32_000, help="of the encodings for --bench")
    parser.add_argument("--bench", action="store_true")
    options = parser.parse_args()
    (bench if options.bench else judge)(options)


if __name__ == "__main__":
    main()
