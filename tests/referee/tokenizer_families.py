"""Small tokenizers in the form of each family of models, trained on request. Used by tokenizer_referee.py."""

import dataclasses
import json
import unicodedata
from collections.abc import Callable

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

from tokenizer_texts import SPECIALS

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DEEPSEEK = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
            r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")


@dataclasses.dataclass
class Family:
    name: str
    train: Callable  # (texts, vocab_size) -> Tokenizer
    lossless: bool = False  # decode(encode(text)) is the text
    alike: Callable | None = None  # the random characters to use: those for which this is true
    is_named: bool = False  # a real model's form: compared on megabytes of text


# The reference's normalisation tables stop at Unicode 11: it lacks later decompositions and combining classes. Titan
# follows the standard, so these characters stay out of the random text of normalised families.
def normalises_alike(char):
    if char == "\U00011938" or unicodedata.category(char) == "Cn":
        return False
    forms = [(getattr(normalizers, form)(), form) for form in ("NFD", "NFKD")]
    probes = [char] + ["a\u0334" + char, "a" + char + "\u0334", "a\u0301" + char, "a" + char + "\u0301", "a\u0345" + char,
                       "a" + char + "\u0345"]
    return all(n.normalize_str(p) == unicodedata.normalize(form, p) for n, form in forms for p in probes)


# The reference's table of punctuation is even older.
def is_punctuation_alike(char):
    category = unicodedata.category(char)
    is_one = category.startswith("P") or char in "$+<=>^`|~"
    return category != "Cn" and is_one == (len(pre_tokenizers.Punctuation().pre_tokenize_str(f"a{char}a")) == 3)


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


def byte_level_shapes():
    """name, pre_tokenizer, normalizer, ignore_merges, added tokens"""
    yield "gpt2", byte_level(use_regex=True), None, False, []
    yield "llama3", split_then_bytes(split(Regex(LLAMA3))), None, True, []
    yield "qwen", split_then_bytes(split(Regex(QWEN))), normalizers.NFC(), False, []
    yield "gpt2 prefix space", byte_level(use_regex=True, add_prefix_space=True), None, False, added_tokens()
    yield "llama3 added tokens", split_then_bytes(split(Regex(LLAMA3))), None, True, added_tokens()
    yield "qwen removed invert", split_then_bytes(split(Regex(QWEN), "removed", True)), normalizers.NFC(), False, added_tokens()
    for name, pattern in (("gpt2", GPT2), ("llama3", LLAMA3), ("qwen", QWEN), ("o200k", O200K), ("tekken", TEKKEN), ("deepseek", DEEPSEEK)):  # the same by PCRE2: (?:) makes the pattern unknown to the plugin
        yield name + " by pcre2", split_then_bytes(split(Regex("(?:)(?:" + pattern + ")"))), None, False, []
    yield "deepseek", split_then_bytes(split(Regex(r"\p{N}{1,3}")), split(Regex("[一-龥぀-ゟ゠-ヿ]+")), split(Regex(DEEPSEEK))), None, False, []
    yield "deepseek v2", split_then_bytes(
        split(Regex("[\r\n]")), split(Regex(r"\s?\p{L}+")), split(Regex(r"\s?\p{P}+")), split(Regex("[一-龥ࠀ-一가-퟿]+")),
        pre_tokenizers.Digits(individual_digits=True)), None, False, []
    yield "gpt-oss", split_then_bytes(split(Regex(O200K))), None, True, []
    yield "o200k", split_then_bytes(split(Regex(O200K), "removed", True)), None, True, []
    yield "tekken", split_then_bytes(split(Regex(TEKKEN))), None, True, []
    yield "punctuation", split_then_bytes(pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous")), None, False, []
    yield "digits", split_then_bytes(pre_tokenizers.Digits(individual_digits=True), use_regex=True), None, False, added_tokens()
    yield "digit runs", split_then_bytes(pre_tokenizers.Digits(individual_digits=False), use_regex=True), normalizers.NFKC(), False, []
    yield "falcon", pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), byte_level(use_regex=True), pre_tokenizers.Digits(False),
                                             split(Regex("[0-9][0-9][0-9]"))]), None, False, []
    yield "cut or removed behind bytes", pre_tokenizers.Sequence([
        byte_level(use_regex=True), pre_tokenizers.Digits(True), pre_tokenizers.Punctuation("merged_with_next"), split(Regex("[aÃ³]")),
        split("Ġ", "removed"), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Whitespace()]), None, False, added_tokens()
    yield "oniguruma", split_then_bytes(split(Regex(r"^\w{2,4}+|\b\h+$|[\w&&[a-z]]x".replace("&&[a-z]", "")), "isolated"),
                                        split(Regex(r"\W{2}?|[^\S\v]{,3}-|[a-c[x-z_]-]+|\d++\D|\p{Han}|\p{^L}\P{Letter}")), use_regex=True), None, False, []
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        for invert in (False, True):
            yield f"split {behavior} {invert}", split_then_bytes(split(" ", behavior, invert), split(Regex(r"[aeiou]|\n"), behavior, not invert)), None, False, []
    yield "nfd", byte_level(use_regex=True), normalizers.NFD(), False, added_tokens()
    yield "nfkd lowercase", byte_level(use_regex=True), normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase()]), False, added_tokens()
    yield "strip replace", byte_level(use_regex=True), normalizers.Sequence([normalizers.Replace(Regex(r"\s{2,}"), " "), normalizers.Replace("o", "0"),
                                                                             normalizers.Strip()]), False, added_tokens()



def train_byte_level(pre_tokenizer, normalizer, ignore_merges, added, texts, vocab_size):
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


def train_with_unused_ids(texts, vocab_size):
    """GPT-2's form. After every sixth id, one has no token. Added tokens keep their ids only inside the model's
    vocab."""
    tokenizer = train_byte_level(byte_level(use_regex=True), None, False, [], texts, vocab_size)
    file = json.loads(tokenizer.to_str())
    spread = {token: id + id // 6 for token, id in file["model"]["vocab"].items()}
    file["model"]["vocab"] = spread
    for token in file["added_tokens"]:
        token["id"] = spread[token["content"]]
    file["post_processor"] = None
    tokenizer = Tokenizer.from_str(json.dumps(file))
    assert tokenizer.token_to_id(SPECIALS[-1]) == spread[SPECIALS[-1]]
    return tokenizer


LLAMA2_NORMALIZER = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])


def llama2_decoder():
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def train_characters(texts, vocab_size, *, normalizer=None, pre_tokenizer=None, trained_with=None, decoder=None, added=(),
                     bytes_too=True, **model):
    """BPE of characters: trained with one pre-tokenizer, used with another."""
    specials = ["<unk>", "<s>", "</s>"]
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)] if bytes_too else []
    affixes = {key: model[key] for key in ("end_of_word_suffix", "continuing_subword_prefix") if key in model}
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", **affixes))
    tokenizer.pre_tokenizer = trained_with or pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=specials + byte_tokens, show_progress=False,
                                  limit_alphabet=400, **affixes)
    tokenizer.train_from_iterator((line for text in texts for line in text.splitlines(True)), trainer)
    # settings that the trainer does not support are set in the file
    file = json.loads(tokenizer.to_str())
    file["model"].update({"unk_token": "<unk>", **model})
    file["added_tokens"] = [token for token in file["added_tokens"] if token["content"] in specials]
    file["pre_tokenizer"] = None
    tokenizer = Tokenizer.from_str(json.dumps(file))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        tokenizer.decoder = decoder
    tokenizer.add_tokens(list(added))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    return tokenizer


def train_words(texts, vocab_size):
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(texts, trainers.WordLevelTrainer(vocab_size=vocab_size, special_tokens=["[UNK]"], show_progress=False))
    return tokenizer


def character_shapes():
    """name, arguments of train_characters, lossless"""
    metaspace = pre_tokenizers.Metaspace
    fallback = {"byte_fallback": True, "fuse_unk": True}
    words = metaspace(prepend_scheme="always", split=True)
    yield "llama2", {"normalizer": LLAMA2_NORMALIZER, "trained_with": words, "decoder": llama2_decoder(), **fallback}, True
    yield "llama2 over words", {"normalizer": LLAMA2_NORMALIZER, "trained_with": metaspace(prepend_scheme="always", split=False),
                                "decoder": llama2_decoder(), **fallback}, True
    yield "mistral", {"pre_tokenizer": metaspace(prepend_scheme="first", split=False), "trained_with": words,
                      "decoder": llama2_decoder(), **fallback}, False
    yield "metaspace always", {"pre_tokenizer": words, "decoder": decoders.Metaspace(), "added": added_tokens(), **fallback}, False
    yield "metaspace first", {"pre_tokenizer": metaspace(prepend_scheme="first"), "decoder": decoders.Metaspace(prepend_scheme="first"),
                              "added": added_tokens(), **fallback}, False
    yield "metaspace never", {"pre_tokenizer": metaspace(prepend_scheme="never"), "decoder": decoders.Metaspace(prepend_scheme="never"),
                              "normalizer": normalizers.Sequence([normalizers.Strip(), normalizers.Prepend("»")]), **fallback}, False
    yield "metaspace after digits", {"pre_tokenizer": pre_tokenizers.Sequence([pre_tokenizers.Digits(True), metaspace(prepend_scheme="first")]),
                                     "decoder": decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]), **fallback}, False
    yield "unknown fused", {"pre_tokenizer": words, "bytes_too": False, "fuse_unk": True}, False
    yield "unknown", {"bytes_too": False, "fuse_unk": False, "trained_with": pre_tokenizers.Whitespace(), "added": added_tokens()}, False
    yield "whole pieces", {"pre_tokenizer": pre_tokenizers.Whitespace(), "ignore_merges": True, "bytes_too": False}, False
    yield "suffix", {"pre_tokenizer": pre_tokenizers.Whitespace(), "end_of_word_suffix": "</w>", "bytes_too": False,
                     "decoder": decoders.BPEDecoder("</w>")}, False
    yield "prefix", {"pre_tokenizer": pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]),
                     "continuing_subword_prefix": "##", "bytes_too": False, "fuse_unk": True}, False
    yield "stripped", {"pre_tokenizer": words, "decoder": decoders.Sequence([decoders.Strip("e", 0, 1), decoders.Strip("▁", 2, 0), decoders.Replace(Regex("e+"), "E"),
                                                                             decoders.ByteFallback()]), **fallback}, False


NAMED = ("gpt2", "llama2", "llama3", "mistral", "tekken", "qwen", "deepseek", "deepseek v2", "gpt-oss", "llama3 added tokens",
         "llama2 over words", "metaspace always")


def alike_of(name, normalizer):
    if name in ("punctuation", "prefix", "falcon"):
        return is_punctuation_alike
    return normalises_alike if normalizer is not None else None


def all_families():
    for name, pre_tokenizer, normalizer, ignore_merges, added in byte_level_shapes():
        lossless = normalizer is None and not added and not any(word in name for word in ("removed", "prefix", "o200k", "punctuation"))
        yield Family(name, lambda texts, size, a=(pre_tokenizer, normalizer, ignore_merges, added): train_byte_level(*a, texts, size),
                     lossless, alike_of(name, normalizer), name in NAMED)
    for name, arguments, lossless in character_shapes():
        yield Family(name, lambda texts, size, a=arguments: train_characters(texts, size, **a), lossless, alike_of(name, None), name in NAMED)
    yield Family("unused ids", train_with_unused_ids, True)
    yield Family("words", train_words)
