"""Compares the tokenizer plugin `huggingface` with the reference library.

Trains small tokenizers in the form of each family with Hugging Face `tokenizers`, encodes nasty strings, random
Unicode and the bundled corpus with both, and compares every id and every decoded text. Prints the comparisons; exits
with 1 at the first family that differs.

    tokenizer_referee.py --probe <tokenize_probe> [--assets tests/assets] [--seed 1] [--fuzz 3000]
    tokenizer_referee.py --probe <tokenize_probe> --bench --text '/usr/share/**/*.txt' ...

--bench trains a tokenizer of 50,000 tokens on the corpus and the files named by --text and prints MB/s of one thread
for Titan and the reference library. Speed is not checked.
"""

import argparse
import functools
import glob
import json
import pathlib
import random
import re
import sys
import tempfile
import time

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from tokenizer_families import SPECIALS, all_families
from tokenizer_texts import (INVALID, NASTY, PHRASES, fuzz_strings, made_up_chinese, probe, read_code, read_corpus, show_difference,
                             write_strings)


def compare_folder(binary, name, folder, tokenizer, strings, texts, flags, lossless, own_spelling):
    """Compares every id and every decoded text of the tokenizer in `folder`; returns the number of
    ids."""
    write_strings(folder + "/strings", strings)
    got = probe(binary, folder, folder + "/strings", *flags)
    decoded = probe(binary, folder, folder + "/strings", "--decode", *flags)
    expected = tokenizer.encode_batch(texts, add_special_tokens=False)
    if not len(got) == len(decoded) == len(texts):
        sys.exit(f"{name}: {len(texts)} strings went in, {len(got)} and {len(decoded)} came back")
    num_ids = 0
    for text, ours, our_text, theirs in zip(texts, got, decoded, expected):
        ours = [int(i) for i in ours.split()]
        num_ids += len(ours)
        if ours != theirs.ids:
            show_difference(f"{name} {' '.join(flags)}", text, ours, theirs.ids, tokenizer.id_to_token)
        is_kept = lossless and not (name.startswith("llama2") and "▁" in text)  # in this family the sign represents a space
        if is_kept and bytes.fromhex(our_text).decode("utf-8") != text:
            sys.exit(f"{name}: decode(encode(text)) is {bytes.fromhex(our_text)[:200]!r} for {text[:200]!r}")
        if not own_spelling.intersection(ours):
            their_text = tokenizer.decode(ours, skip_special_tokens=True)
            if bytes.fromhex(our_text).decode("utf-8") != their_text:
                sys.exit(f"{name}: decoded texts differ for {text[:200]!r}\n  titan     {bytes.fromhex(our_text).decode()[:200]!r}\n"
                         f"  reference {their_text[:200]!r}")
    return num_ids


def compare(binary, name, tokenizer, strings, lossless):
    """Ids with and without special tokens, and decoded texts. Returns (strings, ids) compared."""
    # Titan returns these as the file spells them. The reference returns the normalised form, and reads characters
    # outside ASCII as bytes in the byte-level alphabet: not comparable.
    own_spelling = {id for id, token in tokenizer.get_added_tokens_decoder().items() if token.normalized}
    texts = [data.decode("utf-8", errors="replace") for data in strings]
    num_ids = 0
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder + "/tokenizer.json")
        for parse_special in (False, True):
            tokenizer.encode_special_tokens = not parse_special
            flags = ["--parse-special"] if parse_special else []
            num_ids += compare_folder(binary, name, folder, tokenizer, strings, texts, flags, lossless and not parse_special, own_spelling)
    return len(strings) * 2, num_ids


def check_facts(options, name, folder, tokenizer, bos, eos):
    """Compares size, BOS, EOS and pad with the reference's tokens of the same folder."""
    ids = [-1 if token is None else tokenizer.token_to_id(token) for token in (bos, eos)]
    expected = f"{tokenizer.get_vocab_size()} {ids[0]} {ids[1]} -1"
    got = probe(options.probe, folder, folder + "/strings", "--facts")[0]
    if got != expected:
        sys.exit(f"{name}: size, BOS, EOS and pad are '{got}', the reference has '{expected}'")


def judge_vocab_files(options, training, strings):
    """Folders without tokenizer.json, read in torchtitan's order."""
    texts = [data.decode("utf-8", errors="replace") for data in strings]
    trained = next(f for f in all_families() if f.name == "gpt2").train(training, 1500)
    model = json.loads(trained.to_str())["model"]
    merges = [pair for pair in (m if isinstance(m, list) else m.split() for m in model["merges"]) if not pair[0].startswith("#")]
    lines = sorted(model["vocab"], key=model["vocab"].get)
    total = 0
    for name, files in (("vocab.json", {"vocab.json": json.dumps(model["vocab"])}),
                        ("vocab.txt", {"vocab.txt": "".join(line + "\n" for line in lines)})):
        reference = Tokenizer(models.BPE(model["vocab"], [tuple(pair) for pair in merges]))
        reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        reference.decoder = decoders.ByteLevel()
        reference.add_special_tokens([SPECIALS[0], SPECIALS[1], "<|new|>"])
        reference.encode_special_tokens = True
        files = dict(files)
        files["merges.txt"] = "#version: 0.2\n\n" + "".join(f"{left} {right}\r\n" for left, right in merges)
        files["tokenizer_config.json"] = json.dumps({"bos_token": SPECIALS[0], "eos_token": {"content": SPECIALS[1], "lstrip": False},
                                                     "sep_token": "<|new|>", "add_bos_token": True})
        with tempfile.TemporaryDirectory() as folder:
            for file, content in files.items():
                pathlib.Path(folder, file).write_bytes(content.encode("utf-8"))
            total += compare_folder(options.probe, name, folder, reference, strings, texts, [], True, set())
            check_facts(options, name, folder, reference, SPECIALS[0], SPECIALS[1])
    with tempfile.TemporaryDirectory() as folder:
        words = {"[UNK]": 0, "a b": 1, "word": 2}
        pathlib.Path(folder, "vocab.txt").write_text("[UNK]\na b\n  word \n", encoding="utf-8")
        reference = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
        some = [text.encode("utf-8") for text in ("a b", "word", "a", "a b word", "", "[UNK]")]
        total += compare_folder(options.probe, "words of vocab.txt", folder, reference, some, [s.decode() for s in some], [], False, set())
    print(f"vocab files: {total} ids equal", flush=True)
    return total


CLASSES = ("GPT2Tokenizer", "GPT2TokenizerFast", "GPTNeoXTokenizer", "Qwen2TokenizerFast", "LlamaTokenizer", "GemmaTokenizer",
           "CohereTokenizerFast", "PreTrainedTokenizerFast")
MODEL_TYPES = ("gpt2", "gpt_neox", "qwen2", "llama", "mistral", "olmo2", "opt", "starcoder2", "gemma2", "cohere")


def drawn_folder(rng, in_vocabulary):
    """Files that name special tokens in one of several ways, or not at all."""
    def draw(*choices):
        return rng.choice(choices)
    def named(fields, mark):
        some = {}
        for field in fields:
            token = draw(None, *in_vocabulary, "<|unheard of|>")
            if draw(True, False):
                some[field] = token if draw(True, False) or token is None else {"content": token, "lstrip": False, "rstrip": False,
                                                                               "normalized": False, "single_word": False, **mark}
        return some
    config = named(("bos_token", "eos_token", "pad_token"), {"__type": "AddedToken"}) if draw(True, True, False) else {}
    if draw(True, True, False):
        config["tokenizer_class"] = draw(*CLASSES)
    if draw(True, False, False):
        config["added_tokens_decoder"] = {}
    files = {"tokenizer_config.json": config}
    if draw(True, False):
        files["special_tokens_map.json"] = named(("bos_token", "eos_token", "pad_token"), {})
    if draw(True, False):
        files["config.json"] = {"model_type": draw(*MODEL_TYPES)}
    if "tokenizer_class" not in config and "config.json" not in files:
        config["tokenizer_class"] = "GPT2Tokenizer"
    return files


def judge_special_tokens(options):
    """BOS, EOS and pad of folders whose files and classes name them, as transformers' AutoTokenizer reads them."""
    import transformers
    transformers.logging.set_verbosity_error()
    rng = random.Random(options.seed)
    tokens = ["<|endoftext|>", "<s>", "</s>", "<pad>", "<bos>", "<eos>", "<|padding|>", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<PAD>"]
    reference = next(f for f in all_families() if f.name == "gpt2").train(PHRASES * 20, 600)
    reference.add_special_tokens(tokens)
    reference.post_processor = processors.ByteLevel(trim_offsets=False)  # a template would name some
    num_alike = 0
    for number in range(options.folders):
        with tempfile.TemporaryDirectory() as folder:
            reference.save(folder + "/tokenizer.json")
            files = drawn_folder(rng, tokens)
            for name, content in files.items():
                pathlib.Path(folder, name).write_text(json.dumps(content), encoding="utf-8")
            write_strings(folder + "/strings", [])
            theirs = transformers.AutoTokenizer.from_pretrained(folder)
            expected = [theirs.bos_token, theirs.eos_token, theirs.pad_token]  # texts: some classes assign new ids
            ids = [int(word) for word in probe(options.probe, folder, folder + "/strings", "--facts")[0].split()][1:]
            got = [None if id == -1 else reference.id_to_token(id) or "<|unheard of|>" for id in ids]
            if got != expected:
                sys.exit(f"folder {number} of {files}: BOS, EOS and pad are {got}, {type(theirs).__name__} of transformers has {expected}")
            num_alike += 1
    print(f"special tokens: {num_alike} folders alike", flush=True)


def judge(options):
    rng = random.Random(options.seed)
    corpus = read_corpus(options.assets)
    training = corpus[: len(corpus) // 2] + PHRASES * 50 + made_up_chinese(rng, 40)
    megabytes = corpus + read_code(1.5) + made_up_chinese(rng, 600)
    megabytes = [text.encode("utf-8") for text in megabytes[::options.every]]
    nasty = [text.encode("utf-8") for text in NASTY + PHRASES] + INVALID
    total = 0
    for family in all_families():
        if not re.search(options.only, family.name):
            continue
        tokenizer = family.train(training, 2000 if family.name != "words" else 300)
        strings = nasty + [text.encode("utf-8") for text in fuzz_strings(rng, options.fuzz, family.alike and functools.cache(family.alike))]
        if family.is_named:
            strings += megabytes
        num_strings, num_ids = compare(options.probe, family.name, tokenizer, strings, family.lossless)
        total += num_ids
        print(f"{family.name}: {num_strings} strings, {num_ids} ids equal", flush=True)
    if re.search(options.only, "vocab files"):
        total += judge_vocab_files(options, training, nasty)
    if re.search(options.only, "special tokens"):
        judge_special_tokens(options)
    bundled = Tokenizer.from_file(str(pathlib.Path(options.assets, "tokenizer", "tokenizer.json")))
    num_strings, num_ids = compare(options.probe, "bundled", bundled, nasty + megabytes, True)
    print(f"bundled tokenizer: {num_strings} strings, {num_ids} ids equal")
    print(f"all equal: {total + num_ids} ids")


def bench(options):
    # CPU seconds of one thread on both sides, so that a busy machine changes little
    texts = read_corpus(options.assets)
    for pattern in options.text:
        for file in sorted(glob.glob(pattern, recursive=True)):
            if pathlib.Path(file).is_file():
                texts.append(pathlib.Path(file).read_bytes().decode("utf-8", errors="replace"))
    strings = [text.encode("utf-8") for text in texts]
    size = sum(map(len, strings)) / 1e6
    for family in all_families():
        if not re.search(options.only, family.name) or not (options.only or family.is_named):
            continue
        tokenizer = family.train(texts, options.vocab_size)
        started = time.process_time()
        for text in texts:
            tokenizer.encode(text)
        reference = size / (time.process_time() - started)
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save(folder + "/tokenizer.json")
            write_strings(folder + "/strings", strings)
            lines = probe(options.probe, folder, folder + "/strings", "--bench", "2")
        warm = float(re.search(r"warm: ([\d.]+)", lines[-1])[1])
        print(f"{family.name}: {tokenizer.get_vocab_size()} tokens, {size:.1f} MB; {'; '.join(lines)}; reference {reference:.1f} MB/s, "
              f"ratio {warm / reference:.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--assets", default=str(pathlib.Path(__file__).resolve().parents[1] / "assets"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fuzz", type=int, default=3000, help="random strings per family")
    parser.add_argument("--every", type=int, default=1, help="use only every Nth text of the large corpus, which is faster")
    parser.add_argument("--only", default="", help="regular expression of the families to judge")
    parser.add_argument("--folders", type=int, default=60, help="random folders whose special tokens are compared")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--vocab-size", type=int, default=32_000, help="of the tokenizers for --bench")
    parser.add_argument("--text", nargs="*", default=[], help="globs of further text files for --bench")
    options = parser.parse_args()
    (bench if options.bench else judge)(options)


if __name__ == "__main__":
    main()
