"""Judges the tokenizer plugin `huggingface` by the reference library.

Trains small tokenizers in the shape of each family with Hugging Face `tokenizers`, encodes nasty strings, random
Unicode and the bundled corpus with both, and compares every id and every decoded text. Prints what it compared; exits
with 1 at the first family that differs.

    tokenizer_referee.py --probe <tokenize_probe> [--assets tests/assets] [--seed 1] [--fuzz 3000]
    tokenizer_referee.py --probe <tokenize_probe> --bench --text '/usr/share/**/*.txt' ...

--bench trains a tokenizer of 50,000 tokens on the corpus and the files named by --text and prints MB/s of one thread,
and of the reference library beside it. Speed decides nothing here.
"""

import argparse
import glob
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DEEPSEEK = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
            r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>", "<|pad|>", "<|im_start|>"]

# Phrases in many scripts, so that the merges hold more than ASCII.
PHRASES = [
    "The quick brown fox jumps over the lazy dog.", "It's what they've said: we'll see, I'm sure, he'd agree.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.", "Съешь же ещё этих мягких французских булок.",
    "いろはにほへと ちりぬるを 色は匂へど散りぬるを", "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。", "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ ١٢٣٤٥",
    "키스의 고유조건은 입술끼리 만나야 하고", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία", "ऋषियों को सताने वाले दुष्ट राक्षसों",
    "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 🇩🇪 family", "int main(void) { return 0x1F + 12345678; }\n\n\n\tif (x <= 3) {\r\n}\r\n",
    "café cafe\u0301 ﬁle ½ ² x\u00b2", "https://example.org/a?b=c&d=%20",
]

NASTY = [
    "", " ", "  ", "   word", "word   ", "  two  spaces   three ", "\t", "\ttab\t\ttabs", "a\r\nb\r\n\r\nc", "\n\n\n",
    " \n \n  x", "x \n", "x\n ", "\r\r\n", "\u180e", "a\u180eb \u180e c", "\u00a0", "a\u00a0b\u00a0\u00a0c", "a\u0085b",
    "a\u2028b\u2029c", "\u3000全角\u3000\u3000空白", "it'\u017f", "IT'\u017f'S", "'S 'T 'RE 'VE 'M 'LL 'D", "'s't're've'm'll'd",
    "don't DON'T Don'T 'tis o'clock l'l'll '", "''s ''", "e\u0301 \u00e9 \u1e9b\u0323 q\u0307\u0323 q\u0323\u0307", "\u0301a", " \u0301x",
    "\u212b \u2126 \ufb01 \u00bd \u2460 \uff21", "👩‍👩‍👧‍👦👍🏽🏳️‍🌈🇩🇪", "日本語のテキスト、漢字とかな。", "한국어 \u1100\u1161\u11a8", "السلام ١٢٣٤ عليكم ۱۲۳",
    "1 12 123 1234 12345 123456 1234567", "a1b22c333d4444", "½²³①Ⅷ৴", "³³³³ Ⅷ1Ⅷ1", "a" * 100_000, "ab" * 30_000, " " * 5_000,
    "\n" * 3_000, "1" * 5_000, "é" * 4_000, "…" * 3_000, "x" + " " * 300 + "y", "<|begin_of_text|>", "a<|end_of_text|>b <|pad|> c",
    "<|begin_of_text|><|begin_of_text|>", "<|begin_of_text", "<|im_start|>user\nhi<|im_end|>", "nul\0byte\0\0", "\0", "\x7f\x01\x1b[0m",
    "[TOOL] x[TOOL]y  [TOOL]  [L]  z [R]  w [W] a[W]b_[W] [W]", "na\u00efve NAI\u0308VE", "[TO", "[[TOOL]]", "\u1c89\u1c8a \U000105c0x \U00011bf01",
    "\U00031350\u4e00", "\ue000\uffff\ufdd0\U0010ffff", "\ufeffbom", "\u200b\u200d\u200c", "\u0130I\u0131 ΑΣ", "mixed\tspaces \t\n \t end",
    "#$%&@!~`^*()_+-=[]{}|;:,.<>/?\\", "...!!!???\n\n", "...\r\n\r\nx", " ...\n", "(hello)", "\tword", "\u3000word", "\nword", " 1", "\t1",
]
INVALID = [b"\x80", b"a\xffb", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80", b"\xe2\x28\xa1", b"ok \xf0\x80\x80\x80 ok",
           b"\xc3", b"\xfe\xff\xfe", b"\xf0\x9f\x91\xa9\xe2\x80", b"x\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", b"\xe0\x80\xaf \xf8\x88"]

# The reference's normalisation tables stop at Unicode 11: it does not know decompositions and combining classes that
# came later. Titan follows the standard, so these characters stay out of the random text of normalised families.
def normalises_alike(char):
    if char == "\U00011938" or unicodedata.category(char) == "Cn":
        return False
    forms = [(getattr(normalizers, form)(), form) for form in ("NFD", "NFKD")]
    probes = [char] + ["a\u0334" + char, "a" + char + "\u0334", "a\u0301" + char, "a" + char + "\u0301", "a\u0345" + char,
                       "a" + char + "\u0345"]
    return all(n.normalize_str(p) == unicodedata.normalize(form, p) for n, form in forms for p in probes)


def added_tokens():
    return [AddedToken("[TOOL]", special=False, normalized=False), AddedToken("[L]", special=False, normalized=False, lstrip=True),
            AddedToken("[R]", special=False, normalized=False, rstrip=True), AddedToken("[W]", special=False, normalized=False, single_word=True),
            AddedToken("NA\u00cfVE", special=False, normalized=True), AddedToken("[[TOOL", special=False, normalized=True)]


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": False, **options})


def split_then_bytes(*splits, **options):
    return pre_tokenizers.Sequence([*splits, byte_level(**options)])


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(pattern, behavior, invert)


def families():
    """name -> (pre_tokenizer, normalizer, ignore_merges, added tokens)"""
    yield "gpt2", byte_level(use_regex=True), None, False, []
    yield "llama3", split_then_bytes(split(Regex(LLAMA3))), None, True, []
    yield "qwen", split_then_bytes(split(Regex(QWEN))), normalizers.NFC(), False, []
    yield "gpt2 prefix space", byte_level(use_regex=True, add_prefix_space=True), None, False, added_tokens()
    yield "llama3 added tokens", split_then_bytes(split(Regex(LLAMA3))), None, True, added_tokens()
    yield "qwen removed invert", split_then_bytes(split(Regex(QWEN), "removed", True)), normalizers.NFC(), False, added_tokens()
    for name, pattern in (("gpt2", GPT2), ("llama3", LLAMA3), ("qwen", QWEN)):  # the same by PCRE2: (?:) hides the pattern
        yield name + " by pcre2", split_then_bytes(split(Regex("(?:)(?:" + pattern + ")"))), None, False, []
    yield "deepseek", split_then_bytes(split(Regex(r"\p{N}{1,3}")), split(Regex("[一-龥぀-ゟ゠-ヿ]+")), split(Regex(DEEPSEEK))), None, False, []
    yield "o200k", split_then_bytes(split(Regex(O200K), "removed", True)), None, True, []
    yield "digits", split_then_bytes(pre_tokenizers.Digits(individual_digits=True), use_regex=True), None, False, added_tokens()
    yield "digit runs", split_then_bytes(pre_tokenizers.Digits(individual_digits=False), use_regex=True), normalizers.NFKC(), False, []
    yield "oniguruma", split_then_bytes(split(Regex(r"^\w{2,4}+|\b\h+$|[\w&&[a-z]]x".replace("&&[a-z]", "")), "isolated"),
                                        split(Regex(r"\W{2}?|[^\S\v]{,3}-|[a-c[x-z_]-]+|\d++\D|\p{Han}|\p{^L}\P{Letter}")), use_regex=True), None, False, []
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        for invert in (False, True):
            yield f"split {behavior} {invert}", split_then_bytes(split(" ", behavior, invert), split(Regex(r"[aeiou]|\n"), behavior, not invert)), None, False, []
    yield "nfd", byte_level(use_regex=True), normalizers.NFD(), False, added_tokens()
    yield "nfkd lowercase", byte_level(use_regex=True), normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase()]), False, added_tokens()
    yield "strip replace", byte_level(use_regex=True), normalizers.Sequence([normalizers.Replace(Regex(r"\s{2,}"), " "), normalizers.Replace("o", "0"),
                                                                             normalizers.Strip()]), False, added_tokens()


def train(pre_tokenizer, normalizer, ignore_merges, added, texts, vocab_size=2000):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=SPECIALS, show_progress=False,
                                                             initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_tokens(added)
    bos = SPECIALS[0]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))])
    return tokenizer


def random_char(rng, alike):
    while True:
        kind = rng.random()
        if kind < 0.35:
            char = chr(rng.randrange(0x80))
        elif kind < 0.5:
            char = rng.choice(" \n\r\t'  \u00a0\u0085\u180e\u2028\u3000sStTmMdDlLvVeErR\u017f")
        elif kind < 0.7:
            char = chr(rng.randrange(0x80, 0x3000))
        elif kind < 0.9:
            char = chr(rng.randrange(0x3000, 0x20000))
        else:
            char = chr(rng.randrange(0x110000))
        if not 0xD800 <= ord(char) < 0xE000 and (alike is None or ord(char) < 0x300 or alike(char)):
            return char


def fuzz_strings(rng, count, alike):
    pieces = SPECIALS + ["[TOOL]", "[L]", "[R]", "[W]", "NA\u00cfVE", "naïve", "[[TOOL", "   ", "\r\n\r\n", "don't", "12345"] + PHRASES
    for _ in range(count):
        yield "".join(rng.choice(pieces) if rng.random() < 0.08 else random_char(rng, alike) for _ in range(rng.randrange(1, 60)))


def write_strings(path, strings):
    with open(path, "wb") as out:
        for data in strings:
            out.write(struct.pack("<Q", len(data)) + data)


def probe(binary, folder, strings_file, *arguments):
    result = subprocess.run([binary, folder, strings_file, *arguments], capture_output=True, check=False)
    if result.returncode != 0:
        sys.exit(f"tokenize_probe failed for {folder}: {result.stderr.decode()}")
    return result.stdout.decode("ascii").splitlines()


def compare(binary, name, tokenizer, strings, lossless):
    """Ids with and without special tokens, and decoded texts. Returns (strings, ids) compared."""
    num_ids = 0
    # Titan gives these back as the file spells them. The reference gives the normalised form, and reads characters
    # outside ASCII as bytes in the byte-level alphabet: not comparable.
    own_spelling = {id for id, token in tokenizer.get_added_tokens_decoder().items() if token.normalized}
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder + "/tokenizer.json")
        write_strings(folder + "/strings", strings)
        texts = [data.decode("utf-8", errors="replace") for data in strings]
        for parse_special in (False, True):
            tokenizer.encode_special_tokens = not parse_special
            flags = ["--parse-special"] if parse_special else []
            got = probe(binary, folder, folder + "/strings", *flags)
            decoded = probe(binary, folder, folder + "/strings", "--decode", *flags)
            expected = tokenizer.encode_batch(texts, add_special_tokens=False)
            if not len(got) == len(decoded) == len(texts):
                sys.exit(f"{name}: {len(texts)} strings went in, {len(got)} and {len(decoded)} came back")
            for text, ours, our_text, theirs in zip(texts, got, decoded, expected):
                ours = [int(i) for i in ours.split()]
                num_ids += len(ours)
                if ours != theirs.ids:
                    at = next((i for i, (a, b) in enumerate(zip(ours, theirs.ids)) if a != b), min(len(ours), len(theirs.ids)))
                    sys.exit(f"{name}: ids differ from position {at} on, parse_special={parse_special}, for {text[:200]!r}\n"
                             f"  titan     {ours[at:at + 20]} {[tokenizer.id_to_token(i) for i in ours[at:at + 8]]}\n"
                             f"  reference {theirs.ids[at:at + 20]} {theirs.tokens[at:at + 8]}")
                if lossless and not parse_special and bytes.fromhex(our_text).decode("utf-8") != text:
                    sys.exit(f"{name}: decode(encode(text)) is {bytes.fromhex(our_text)!r} for {text!r}")
                if not own_spelling.intersection(ours) and (
                        bytes.fromhex(our_text).decode("utf-8") != tokenizer.decode(ours, skip_special_tokens=True)):
                    sys.exit(f"{name}: decoded texts differ for {text[:200]!r}")
    return len(strings) * 2, num_ids


def read_corpus(assets):
    texts = []
    for file in sorted(pathlib.Path(assets, "corpus").glob("*.jsonl")):
        with open(file, encoding="utf-8") as lines:
            texts += [json.loads(line)["text"] for line in lines]
    if not texts:
        sys.exit(f"no corpus under {assets}/corpus")
    return texts


def judge(options):
    rng = random.Random(options.seed)
    corpus = read_corpus(options.assets)
    training = corpus[: len(corpus) // 2] + PHRASES * 50
    corpus_bytes = [text.encode("utf-8") for text in corpus]
    known = {}

    def alike(char):
        if char not in known:
            known[char] = normalises_alike(char)
        return known[char]

    nasty = [text.encode("utf-8") for text in NASTY + PHRASES] + INVALID
    total = 0
    for name, pre_tokenizer, normalizer, ignore_merges, added in families():
        if not re.search(options.only, name):
            continue
        tokenizer = train(pre_tokenizer, normalizer, ignore_merges, added, training)
        strings = nasty + [text.encode("utf-8") for text in fuzz_strings(rng, options.fuzz, alike if normalizer else None)]
        if name in ("gpt2", "llama3", "qwen", "llama3 added tokens", "deepseek", "o200k"):
            strings += corpus_bytes
        lossless = normalizer is None and not added and "removed" not in name and "prefix" not in name and "o200k" not in name
        num_strings, num_ids = compare(options.probe, name, tokenizer, strings, lossless)
        total += num_ids
        print(f"{name}: {num_strings} strings, {num_ids} ids equal", flush=True)
    bundled = Tokenizer.from_file(str(pathlib.Path(options.assets, "tokenizer", "tokenizer.json")))
    num_strings, num_ids = compare(options.probe, "bundled", bundled, nasty + corpus_bytes, True)
    print(f"bundled tokenizer: {num_strings} strings, {num_ids} ids equal")
    print(f"all equal: {total + num_ids} ids")


def bench(options):
    texts = read_corpus(options.assets)
    for pattern in options.text:
        for file in sorted(glob.glob(pattern, recursive=True)):
            if pathlib.Path(file).is_file():
                texts.append(pathlib.Path(file).read_bytes().decode("utf-8", errors="replace"))
    strings = [text.encode("utf-8") for text in texts]
    size = sum(map(len, strings)) / 1e6
    for name, pre_tokenizer, normalizer, ignore_merges, _ in families():
        if name not in ("gpt2", "llama3", "qwen", "llama3 by pcre2"):
            continue
        tokenizer = train(pre_tokenizer, normalizer, ignore_merges, [], texts, 50_000)
        print(f"{name}: {tokenizer.get_vocab_size()} tokens, {size:.1f} MB of text in {len(texts)} documents")
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save(folder + "/tokenizer.json")
            write_strings(folder + "/strings", strings)
            for line in probe(options.probe, folder, folder + "/strings", "--bench", "3"):
                print("  titan", line)
        started = time.perf_counter()
        for text in texts:
            tokenizer.encode(text)
        print(f"  reference library: {size / (time.perf_counter() - started):.1f} MB/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--assets", default=str(pathlib.Path(__file__).resolve().parents[1] / "assets"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fuzz", type=int, default=3000, help="random strings per family")
    parser.add_argument("--only", default="", help="regular expression of the families to judge")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--text", nargs="*", default=[], help="globs of further text files for --bench")
    options = parser.parse_args()
    (bench if options.bench else judge)(options)


if __name__ == "__main__":
    main()
