"""Texts for the tokenizer referees, and running the probe. Used by tokenizer_referee.py and tiktoken_referee.py."""

import json
import pathlib
import struct
import subprocess
import sys
import sysconfig

SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>", "<|pad|>", "<|im_start|>"]

# Phrases in many scripts, so that the merges contain more than ASCII.
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


def show_difference(name, text, ours, theirs, token_of):
    """Ends the referee: prints the first ids that differ, and their place in the text."""
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    sys.exit(f"{name}: ids differ from position {at} on, for {text[:200]!r}\n"
             f"  titan     {ours[at:at + 20]} {[token_of(i) for i in ours[at:at + 8]]}\n"
             f"  reference {theirs[at:at + 20]} {[token_of(i) for i in theirs[at:at + 8]]}")


def read_corpus(assets):
    texts = []
    for file in sorted(pathlib.Path(assets, "corpus").glob("*.jsonl")):
        with open(file, encoding="utf-8") as lines:
            texts += [json.loads(line)["text"] for line in lines]
    if not texts:
        sys.exit(f"no corpus under {assets}/corpus")
    return texts


def read_code(megabytes):
    """Source code: the Python library's own, which is always installed."""
    texts, size = [], 0
    for file in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        texts.append(file.read_bytes().decode("utf-8", errors="replace"))
        size += len(texts[-1])
        if size > megabytes * 1e6:
            return texts
    return texts


def made_up_chinese(rng, kilobytes):
    """Sentences of common and rare characters, kana, Hangul, digits and Latin words."""
    texts = []
    for _ in range(kilobytes):
        chars = []
        while len(chars) < 330:
            kind = rng.random()
            if kind < 0.75:
                chars.append(chr(int(0x4E00 + 20900 * rng.random() ** 3)))
            elif kind < 0.85:
                chars.append(chr(rng.randrange(0x3041, 0x30FF)))
            elif kind < 0.9:
                chars.append(chr(rng.randrange(0xAC00, 0xD7A4)))
            elif kind < 0.96:
                chars.append(rng.choice("，。、！？「」"))
            else:
                chars += rng.choice(["GPU", " 3.14 ", "2024", "Titan", "\n"])
        texts.append("".join(chars))
    return texts
