#!/usr/bin/env python3
"""Makes the small files of this folder, which the conformance.toml files of Titan's plugins name. Needs pyarrow and sentencepiece."""

import base64
import gzip
import io
import json
import pathlib
import struct

import pyarrow
import pyarrow.parquet
import sentencepiece

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = [f"Document {i}: " + " ".join(f"word{(7 * i + j) % 31}" for j in range(8 + i % 11)) for i in range(48)]


def c4():
    for split in ("train", "validation"):
        for shard in range(2):
            lines = "".join(json.dumps({"text": text, "timestamp": "2019-04-25T12:57:54Z", "url": f"https://example.org/{i}"}) + "\n"
                            for i, text in enumerate(TEXTS) if i % 2 == shard)
            path = HERE / "c4" / f"c4-{split}.{shard:05}-of-00002.json.gz"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(gzip.compress(lines.encode(), mtime=0))


def parquet():
    pyarrow.parquet.write_table(pyarrow.table({"text": TEXTS}), HERE / "texts.parquet", row_group_size=16)


def texts():
    folder = HERE / "texts"
    folder.mkdir(exist_ok=True)
    for i, text in enumerate(TEXTS[:12]):
        (folder / f"{i:02}.txt").write_text(text + "\n")


def tokens():
    ids = [token for i in range(48) for token in [1, *(2 + (i * 5 + j) % 60 for j in range(20))]]
    (HERE / "tokens.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))


def megatron():
    documents = [[2 + (i * 5 + j) % 60 for j in range(20 + i % 5)] + [1] for i in range(48)]
    (HERE / "megatron.bin").write_bytes(b"".join(struct.pack(f"<{len(d)}H", *d) for d in documents))
    offsets, at = [], 0
    for d in documents:
        offsets.append(at)
        at += 2 * len(d)
    count = len(documents)
    (HERE / "megatron.idx").write_bytes(
        b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, count, count + 1) + struct.pack(f"<{count}i", *map(len, documents))
        + struct.pack(f"<{count}q", *offsets) + struct.pack(f"<{count + 1}q", *range(count + 1)))


def tokenizers():
    folder = HERE / "tiktoken"
    folder.mkdir(exist_ok=True)
    ranks = [bytes([byte]) for byte in range(256)] + [b"th", b"the", b" w", b"or"]
    (folder / "tokenizer.model").write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(ranks)))
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXTS), model_writer=model, vocab_size=320, model_type="bpe", byte_fallback=True,
                                             normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=False,
                                             hard_vocab_limit=False, minloglevel=2)
    folder = HERE / "sentencepiece"
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.model").write_bytes(model.getvalue())


def schedule():
    rows = [",".join([f"{rank}F{m}" for m in range(8)] + [f"{rank}B{m}" for m in range(8)]) for rank in range(2)]
    (HERE / "gpipe.csv").write_text("\n".join(rows) + "\n")


def tasks():
    (HERE / "tasks.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:4]))


for make in (tasks, schedule, c4, parquet, texts, tokens, megatron, tokenizers):
    make()
