"""Compares the tokenizer plugin `sentencepiece` with the reference library.

Trains models with the Python package `sentencepiece` in many combinations of options, changes some of them as trainers
never do (unused pieces, equal scores, missing characters), encodes nasty strings, random Unicode and the bundled corpus
with both, and compares every id; decodes those ids and random ones with both, and compares every text. Exits with 1 at
the first difference.

    sentencepiece_referee.py --probe <tokenize_probe> [--assets tests/assets] [--seed 1] [--fuzz 1000]
    sentencepiece_referee.py --probe <tokenize_probe> --bench [--text '/usr/share/**/*.txt' ...]

--bench trains on the corpus and the files named by --text and prints MB/s of one thread for Titan and the reference
library. Speed is not checked.
"""

import argparse
import glob
import io
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as proto

SPACE = "\u2581"
LONG = ["default", "gemma", "words joined", "many unused", "llama 2", "unigram"]  # models that also encode texts of megabytes
USER_DEFINED = ["<start_of_turn>", "<start", "\n", "\n\n", "\n\n\n", "\t", SPACE * 2, SPACE * 3, SPACE * 8, "né", "日本", "#hash"]
CONTROLS = ["<|im_start|>", "<2de>", "control"]
BYTES = dict(normalization_rule_name="identity", remove_extra_whitespaces=False, byte_fallback=True)

# Phrases in many scripts, so that pieces contain more than ASCII.
PHRASES = [
    "The quick brown fox jumps over the lazy dog.", "It's what they've said: we'll see, I'm sure, he'd agree.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.", "Съешь же ещё этих мягких французских булок.",
    "いろはにほへと ちりぬるを 色は匂へど散りぬるを", "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。", "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ ١٢٣٤٥",
    "키스의 고유조건은 입술끼리 만나야 하고", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία", "ऋषियों को सताने वाले दुष्ट राक्षसों",
    "int main(void) { return 0x1F + 12345678; }", "    if (x <= 3)  {   y += 22;  }", "https://example.org/a?b=c&d=%20", "née né #hash #hashes 日本語",
]

NASTY = [
    "", " ", "  ", "   word", "word   ", "  two  spaces   three ", "\t", "\ttab\t\ttabs", "a\r\nb\r\n\r\nc", "\n\n\n", "\n\n\n\n\nx", " \n \n  x", "x \n",
    "\u180e", "a\u180eb \u180e c", "\u00a0", "a\u00a0b\u00a0\u00a0c", "a\u0085b", "a\u2028b\u2029c", "\u3000全角\u3000\u3000空白", "it'\u017f", "IT'\u017f'S",
    "e\u0301 \u00e9 \u1e9b\u0323 q\u0307\u0323 q\u0323\u0307", "\u0301a", " \u0301x", "\u212b \u2126 \ufb01 \u00bd \u2460 \uff21 \u3392 \ufdfa", "👩‍👩‍👧‍👦👍🏽🏳️‍🌈🇩🇪",
    "👩‍👩‍👧‍👦 family 👩‍👩‍👧‍👦", "日本語のテキスト、漢字とかな。", "ｱｲｳｴｵ ﾊﾟﾋﾟ ガ", "한국어 \u1100\u1161\u11a8", "السلام ١٢٣٤ عليكم ۱۲۳", "\u202eright\u202c \u200fto\u200e left",
    "1 12 123 1234 12345 123456 1234567", "½²³①Ⅷ৴", "a" * 20_000, "ab" * 10_000, " " * 5_000, SPACE * 3_001, "\n" * 3_000, "é" * 4_000, "…" * 3_000,
    "日" * 2_000, "x" + " " * 300 + "y", "<s>", "</s>", "<unk>", "<pad>", "a<s>b </s> c<unk>", "<|im_start|>user control <2de>", "<0x41><0x0A> <0x00>", "nul\0byte\0\0", "\0", "\0 \0",
    "\x7f\x01\x1b[0m", SPACE, SPACE + "a", "a" + SPACE, "a" + SPACE + "b", SPACE * 2, " " + SPACE + " ", SPACE + " " + SPACE + "x" + SPACE + " ", "x " + SPACE, "<start_of_turn>user\n<start_of_tur",
    "<start_of_turn><start_of_turn>", " <start_of_turn> ", "a<start_of_turn> b", "#hash #hash#hash  #hashes", "néné  née NÉ", "日本日本語", "\t\t \t", "  \t  \n\n\n\n  ", "    four", "        eight", "         nine",
    "\U00031350\u4e00", "\ue000\uffff\ufdd0\U0010ffff", "\ufeffbom", "\u200b\u200d\u200c", "a\u200bb\u200b", "\u0130I\u0131 ΑΣ ß ẞ", "mixed\tspaces \t\n \t end", "\ufffd", "\u2047 \u2047",
    "#$%&@!~`^*()_+-=[]{}|;:,.<>/?\\", "...!!!???\n\n", " ...\n", "\ud7ff\ue000", "ﬀﬁﬂ", "①②③", "ﾞﾟ", "\u0041\u030a\u0327", "\u1e0b\u0323", "\u0344", "\u2126\u0301",
]
INVALID = [b"\x80", b"a\xffb", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80", b"\xe2\x28\xa1", b"ok \xf0\x80\x80\x80 ok",
           b"\xc3", b"\xfe\xff\xfe", b"\xf0\x9f\x91\xa9\xe2\x80", b"x\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", b"\xe2\x96", b"\xe2\x96 \xe2\x96\x81", b"e\xcc"]


def train(texts, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, num_threads=1, minloglevel=2, max_sentence_length=20_000,
        **{"model_type": "bpe", "vocab_size": 2000, "character_coverage": 0.999, **options})
    return model.getvalue()


def changed(model, change, rng):
    message = proto.ModelProto.FromString(model)
    change(message, rng)
    return message.SerializeToString()


def long_pieces(message):
    return [piece for piece in message.pieces if piece.type == piece.NORMAL and len(piece.piece) > 1]


def make_unused(share):
    def change(message, rng):
        for piece in message.pieces:
            if piece.type == piece.NORMAL and rng.random() < share:
                piece.type = piece.UNUSED
    return change


def make_user_defined(message, rng):
    for piece in rng.sample(long_pieces(message), 60):
        piece.type = piece.USER_DEFINED


def make_ties(message, rng):
    for piece in message.pieces:
        piece.score = rng.choice([-1.0, -2.0, -3.0, 0.5])


def drop_characters(message, rng):
    keep = [piece for piece in message.pieces if piece.type != piece.NORMAL or len(piece.piece) > 1 or rng.random() < 0.7]
    del message.pieces[:]
    message.pieces.extend(keep)


def no_escape(message, rng):
    message.normalizer_spec.escape_whitespaces = False


def shuffle_ids(message, rng):
    pieces = list(message.pieces)
    rng.shuffle(pieces)
    copies = [proto.ModelProto.SentencePiece.FromString(piece.SerializeToString()) for piece in pieces]
    del message.pieces[:]
    message.pieces.extend(copies)


def random_pieces(message, rng):
    """Pieces over few characters: many ways to merge, many equal scores, pieces that cannot be reached."""
    known = {piece.piece for piece in message.pieces}
    for _ in range(3000):
        text = "".join(rng.choice("aab" + SPACE) for _ in range(rng.randrange(1, 7)))
        if text not in known:
            known.add(text)
            kind = rng.choices([1, 4, 5], [0.7, 0.02, 0.28])[0]
            message.pieces.add(piece=text, score=rng.choice([-1.0, -2.0, rng.random()]), type=kind)


def models(texts, rng, folder):
    """name -> bytes of the model"""
    def rules(name, *lines):
        path = pathlib.Path(folder, name)
        path.write_text("".join("\t".join(line) + "\n" for line in lines))
        return str(path)

    gemma = dict(BYTES, add_dummy_prefix=False, user_defined_symbols=USER_DEFINED, split_digits=True, allow_whitespace_only_pieces=True)
    custom = rules("custom.tsv", ("41", "61"), ("C9", "65 301"), ("66 69", "FB01"), ("9", "20 20"), ("78 20", "20"), ("7A", ""), ("2581", "5F"), ("5B 5B", "20 5B"))
    inverse = rules("inverse.tsv", ("FB01", "66 69"), ("65 301", "C9"), ("71", "20"))
    small = ["aab abba baab", "abab  aa b", "bab ab a"] * 20 + texts[:20]
    llama = train(texts, **BYTES, split_digits=True, allow_whitespace_only_pieces=True)
    default = train(texts)
    unigram = train(texts, model_type="unigram")

    yield "llama 2", llama
    yield "default", default
    yield "gemma", train(texts, **gemma)
    yield "suffix", train(texts, treat_whitespace_as_suffix=True)
    yield "suffix identity", train(texts, **BYTES, treat_whitespace_as_suffix=True, allow_whitespace_only_pieces=True)
    yield "suffix user defined", train(texts, treat_whitespace_as_suffix=True, user_defined_symbols=USER_DEFINED)
    for rule in ("nfkc", "nfkc_cf", "nmt_nfkc_cf"):
        yield rule, train(texts, normalization_rule_name=rule, byte_fallback=rule == "nfkc")
    yield "words joined", train(texts, split_by_whitespace=False, split_by_unicode_script=False, split_by_number=False, **BYTES)
    yield "words joined nmt", train(texts, split_by_whitespace=False, remove_extra_whitespaces=False)
    yield "no prefix", train(texts, add_dummy_prefix=False, normalization_rule_name="identity")
    yield "controls", train(texts, control_symbols=CONTROLS, user_defined_symbols=USER_DEFINED, unk_surface="[?]", bos_id=-1, eos_id=3, pad_id=2, unk_id=1, unk_piece="<oov>",
                            pad_piece="[PAD]", eos_piece="[END]")
    yield "own rules", train(texts, normalization_rule_tsv=custom)
    yield "own rules kept blanks", train(texts, normalization_rule_tsv=custom, remove_extra_whitespaces=False, user_defined_symbols=USER_DEFINED)
    yield "denormalizer", train(texts, denormalization_rule_tsv=inverse)
    yield "few unused", changed(llama, make_unused(0.02), rng)
    yield "many unused", changed(default, make_unused(0.4), rng)
    yield "unused joined", changed(train(texts, split_by_whitespace=False, **BYTES), make_unused(0.3), rng)
    yield "user defined pieces", changed(default, make_user_defined, rng)
    yield "user defined pieces llama", changed(llama, make_user_defined, rng)
    yield "ties", changed(llama, make_ties, rng)
    yield "ties joined", changed(train(texts, split_by_whitespace=False), make_ties, rng)
    yield "characters missing", changed(default, drop_characters, rng)
    yield "characters missing llama", changed(llama, drop_characters, rng)
    yield "blanks not escaped", changed(default, no_escape, rng)
    yield "ids shuffled", changed(train(texts, **gemma), shuffle_ids, rng)
    yield "random pieces", changed(train(small, vocab_size=300, hard_vocab_limit=False), random_pieces, rng)
    yield "random pieces bytes", changed(train(small, vocab_size=500, hard_vocab_limit=False, **BYTES), random_pieces, rng)
    yield "unigram", unigram
    yield "unigram bytes", train(texts, model_type="unigram", **BYTES)
    yield "unigram user defined", train(texts, model_type="unigram", user_defined_symbols=USER_DEFINED, control_symbols=CONTROLS, pad_id=3)
    yield "unigram suffix", train(texts, model_type="unigram", treat_whitespace_as_suffix=True)
    yield "unigram joined", train(texts, model_type="unigram", split_by_whitespace=False, remove_extra_whitespaces=False)
    yield "unigram unused", changed(unigram, make_unused(0.3), rng)
    yield "unigram ties", changed(unigram, make_ties, rng)
    yield "unigram characters missing", changed(unigram, drop_characters, rng)
    yield "unigram user defined pieces", changed(unigram, make_user_defined, rng)


def random_char(rng):
    while True:
        kind = rng.random()
        if kind < 0.4:
            char = chr(rng.randrange(0x80))
        elif kind < 0.55:
            char = rng.choice(" \n\t   \u00a0\u0085\u180e\u2028\u3000\u2581\u0301\u0327\u200b\u00adaab ")
        elif kind < 0.75:
            char = chr(rng.randrange(0x80, 0x3000))
        elif kind < 0.92:
            char = chr(rng.randrange(0x3000, 0x20000))
        else:
            char = chr(rng.randrange(0x110000))
        if not 0xD800 <= ord(char) < 0xE000:
            return char


def fuzz_strings(rng, count, pieces):
    pieces = pieces + USER_DEFINED + CONTROLS + ["<s>", "<0x0A>", "   "] + PHRASES
    for i in range(count):
        if i % 4 == 0:
            yield "".join(rng.choice("aabb  " + SPACE) for _ in range(rng.randrange(1, 80)))
        elif i % 4 == 1:
            yield "".join(rng.choice(pieces).replace(SPACE, " ") for _ in range(rng.randrange(1, 30)))
        else:
            yield "".join(rng.choice(pieces) if rng.random() < 0.1 else random_char(rng) for _ in range(rng.randrange(1, 60)))


def write_strings(path, strings):
    with open(path, "wb") as out:
        for data in strings:
            out.write(struct.pack("<Q", len(data)) + data)


def probe(binary, model, file, *arguments):
    arguments = [binary, model, file, "--sentencepiece", *arguments]
    result = subprocess.run(arguments, capture_output=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))} failed: {result.stderr.decode()}")
    return result.stdout.decode("ascii").splitlines()


def compare(binary, name, model, strings, rng):
    """Ids and decoded texts. Returns how many ids were compared."""
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/tokenizer.model"
        pathlib.Path(path).write_bytes(model)
        write_strings(folder + "/strings", strings)
        info = [int(number) for number in probe(binary, path, folder + "/strings", "--facts")[0].split()]
        if info != [theirs.vocab_size(), theirs.bos_id(), theirs.eos_id(), theirs.pad_id()]:
            sys.exit(f"{name}: size, bos, eos, pad are {info}, the reference has {theirs.vocab_size()} {theirs.bos_id()} {theirs.eos_id()} {theirs.pad_id()}")
        got = [[int(i) for i in line.split()] for line in probe(binary, folder, folder + "/strings")]
        if len(got) != len(strings):
            sys.exit(f"{name}: {len(strings)} strings went in, {len(got)} came back")
        for data, ours in zip(strings, got):
            text = data.decode("utf-8", errors="replace")
            expected = theirs.encode(text)
            if ours != expected:
                at = next((i for i, (a, b) in enumerate(zip(ours, expected)) if a != b), min(len(ours), len(expected)))
                sys.exit(f"{name}: ids differ from position {at} on for {text[:200]!r}\n"
                         f"  titan     {[theirs.id_to_piece(i) for i in ours[at:at + 12]]}\n"
                         f"  reference {[theirs.id_to_piece(i) for i in expected[at:at + 12]]}")
        spaces = [i for i in range(theirs.vocab_size()) if theirs.id_to_piece(i).startswith(SPACE)]
        special = [i for i in range(theirs.vocab_size()) if theirs.is_byte(i) or theirs.is_control(i) or theirs.is_unknown(i)]
        lists = got + [[rng.choice(rng.choice((range(theirs.vocab_size()), spaces, special))) for _ in range(rng.randrange(1, 12))] for _ in range(2000)]
        pathlib.Path(folder, "ids").write_text("".join(" ".join(map(str, ids)) + "\n" for ids in lists))
        decoded = [bytes.fromhex(line).decode("utf-8") for line in probe(binary, path, folder + "/ids", "--decode-ids")]
        for ids, ours, expected in zip(lists, decoded, theirs.decode(lists), strict=True):
            if ours != expected:
                sys.exit(f"{name}: decoded texts differ for {[theirs.id_to_piece(i) for i in ids[:40]]}\n  titan     {ours[:200]!r}\n  reference {expected[:200]!r}")
    return sum(map(len, got))


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
    training = [line for text in corpus[::8] for line in text.split("\n")] + PHRASES * 30
    whole = "\n".join(corpus)
    long = [whole, whole.replace(" ", ""), "a" * 1_000_000, " ".join(PHRASES * 300)]
    fixed = [text.encode("utf-8") for text in NASTY + PHRASES] + INVALID
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, model) in enumerate(models(training, rng, folder)):
            if not re.search(options.only, name):
                continue
            pieces = [piece.piece for piece in proto.ModelProto.FromString(model).pieces]
            strings = fixed + [text.encode("utf-8") for text in fuzz_strings(rng, options.fuzz, pieces)]
            strings += [text.encode("utf-8") for text in corpus[number % 3::3 * options.every]]
            if name in (LONG if options.every == 1 else LONG[-1:]):
                strings += [text.encode("utf-8") for text in long]
            num_ids = compare(options.probe, name, model, strings, rng)
            total += num_ids
            print(f"{name}: {len(strings)} strings, {num_ids} ids equal", flush=True)
    print(f"all equal: {total} ids")


def bench(options):
    texts = read_corpus(options.assets)
    for pattern in options.text:
        for file in sorted(glob.glob(pattern, recursive=True)):
            if pathlib.Path(file).is_file():
                texts.append(pathlib.Path(file).read_bytes().decode("utf-8", errors="replace"))
    size = sum(len(text.encode("utf-8")) for text in texts) / 1e6
    training = [line for text in texts for line in text.split("\n") if len(line) < 5000]
    families = {"llama 2": dict(BYTES, split_digits=True, allow_whitespace_only_pieces=True), "nmt_nfkc": {}, "unigram": dict(model_type="unigram")}
    for name, arguments in families.items():
        model = train(training, vocab_size=options.vocab_size, **arguments)
        print(f"{name}: {options.vocab_size} pieces, {size:.1f} MB of text in {len(texts)} documents")
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "tokenizer.model").write_bytes(model)
            write_strings(folder + "/strings", [text.encode("utf-8") for text in texts])
            lines = probe(options.probe, folder, folder + "/strings", "--bench", "3")[1:]
        theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
        started = time.thread_time()
        for text in texts:
            theirs.encode(text)
        reference = size / (time.thread_time() - started)
        for line in lines:
            print("  titan", line, f"({float(line.split()[-4 if 'first' not in line else -2]) / reference:.1f} x)")
        print(f"  reference library: {reference:.2f} MB/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--assets", default=str(pathlib.Path(__file__).resolve().parents[1] / "assets"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fuzz", type=int, default=1000, help="random strings per model")
    parser.add_argument("--every", type=int, default=1, help="use only every Nth text of the corpus, and texts of megabytes for one model")
    parser.add_argument("--only", default="", help="regular expression of the models to judge")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--vocab-size", type=int, default=8000, help="of the models of --bench")
    parser.add_argument("--text", nargs="*", default=[], help="globs of further text files for --bench")
    options = parser.parse_args()
    (bench if options.bench else judge)(options)


if __name__ == "__main__":
    main()
