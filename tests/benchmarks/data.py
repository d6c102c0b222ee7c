#!/usr/bin/env python3
"""Measures how fast training data is read, tokenized and packed: MB of text and tokens per second for each kind of source and 1 or 2
threads, compared with synthetic tokens as the upper bound.

Every format holds the same text; all cases of a round are measured in turn, and the table holds the medians over the rounds.

    python3 tests/benchmarks/data.py                              # 5 rounds of 2 s a case
    python3 tests/benchmarks/data.py --write docs/results/data_figures.md
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import numpy
import pyarrow
import pyarrow.parquet
import zstandard

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = pathlib.Path(os.environ.get("TITAN_PROGRAM", ROOT / "build/release/bin/titan"))
TOKENIZER = ROOT / "tests/assets/tokenizer"
ROWS, SEQ_LEN, SHARDS = 8, 2048, 8
HEADING = """# Figures of the data path

`python3 tests/benchmarks/data.py --write {file}`: {size:.0f} MB of English text, {cpus} CPUs, {rows} rows of {seq_len}
tokens; medians of {rounds} rounds of {seconds} s. Opening is the time until the first step is there.

| source | opening (s) | 1 thread: MB/s | tokens/s | 2 threads: MB/s | tokens/s | 2 threads / 1 |
|---|---|---|---|---|---|---|
"""


def documents(copies):
    """The bundled corpus many times over; words are permuted, so that no two copies are equal."""
    texts = [json.loads(line)["text"] for line in (ROOT / "tests/assets/corpus/train.jsonl").read_text().splitlines()]
    for copy in range(copies):
        for text in texts:
            words = text.split(" ")
            turn = copy * 7 % max(1, len(words))
            yield " ".join(words[turn:] + words[:turn])


def write_sources(folder, copies):
    """{name: flags}, and the bytes of the text."""
    texts = list(documents(copies))
    lines = [json.dumps({"text": text, "id": str(number)}, ensure_ascii=False) + "\n" for number, text in enumerate(texts)]
    parts = [range(shard * len(texts) // SHARDS, (shard + 1) * len(texts) // SHARDS) for shard in range(SHARDS)]
    for kind in ("plain", "gz", "zst", "parquet", "one_gz"):
        (folder / kind).mkdir()
    (folder / "one_gz/data.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode(), 6))
    for shard, part in enumerate(parts):
        text = "".join(lines[i] for i in part).encode()
        (folder / f"plain/{shard}.jsonl").write_bytes(text)
        (folder / f"gz/c4-train.{shard:05}-of-{SHARDS:05}.json.gz").write_bytes(gzip.compress(text, 6))
        (folder / f"zst/{shard}.jsonl.zst").write_bytes(zstandard.ZstdCompressor(3).compress(text))
        table = pyarrow.table({"text": [texts[i] for i in part], "id": [str(i) for i in part]})
        pyarrow.parquet.write_table(table, folder / f"parquet/{shard}.parquet", row_group_size=1000, compression="snappy")
    subprocess.run([TITAN, "tokenize", "--output", folder / "tokens", "--training.dataset", "jsonl", "--training.dataset_path",
                    folder / "plain", "--model.hf_assets_path", TOKENIZER], check=True, capture_output=True, cwd=ROOT)
    numpy.fromfile(folder / "tokens.bin", "<u2").tofile(folder / "train.bin")
    jsonl = ["--training.dataset", "jsonl", "--training.dataset_path"]
    return {
        "synthetic, uniform (the ceiling)": ["--training.dataset", "synthetic", "--dataset.synthetic.task", "uniform"],
        "megatron .bin/.idx": ["--training.dataset", "megatron", "--training.dataset_path", folder / "tokens"],
        "tokens, nanoGPT .bin": ["--training.dataset", "tokens", "--training.dataset_path", folder / "train.bin", "--dataset.tokens.format", "raw"],
        "jsonl, indexed": [*jsonl, folder / "plain"],
        "jsonl, streamed": [*jsonl, folder / "plain", "--dataset.jsonl.no_index"],
        f"c4, {SHARDS} .json.gz": ["--training.dataset", "c4", "--training.dataset_path", folder / "gz"],
        "jsonl, one .gz": [*jsonl, folder / "one_gz"],
        f"jsonl, {SHARDS} .zst": [*jsonl, folder / "zst"],
        f"parquet, {SHARDS} files": ["--training.dataset", "parquet", "--training.dataset_path", folder / "parquet"],
    }, sum(len(text.encode()) for text in texts)


def measure(flags, workers, seconds):
    run = subprocess.run([TITAN.parent / "loader_benchmark", str(seconds), str(workers), str(ROWS), str(SEQ_LEN), *map(str, flags),
                          "--model.hf_assets_path", str(TOKENIZER)], cwd=ROOT, capture_output=True, text=True, timeout=600)
    if run.returncode:
        raise SystemExit(f"{flags}: {run.stderr}")
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--copies", type=int, default=60, help="of the bundled corpus, 1.7 MB each")
    parser.add_argument("--write", metavar="FILE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        sources, size = write_sources(pathlib.Path(folder), arguments.copies)
        found = {}
        for _ in range(arguments.rounds):
            for name, flags in sources.items():
                for workers in (1, 2):
                    found.setdefault((name, workers), []).append(measure(flags, workers, arguments.seconds))
    median = lambda name, workers, key: statistics.median(run[key] for run in found[name, workers])
    rows = ""
    for name in sources:
        ratio = statistics.median(two["tokens_per_s"] / one["tokens_per_s"]
                                  for one, two in zip(found[name, 1], found[name, 2]))
        cells = [name, f"{median(name, 1, 'opening_s'):.3f}"]
        for workers in (1, 2):
            text = median(name, workers, "text_mb_per_s")
            cells += [f"{text:.1f}" if text else "", f"{median(name, workers, 'tokens_per_s') / 1e6:.2f} M"]
        rows += "| " + " | ".join([*cells, f"{ratio:.2f}"]) + " |\n"
    text = HEADING.format(file=arguments.write or "FILE", size=size / 1e6, cpus=os.cpu_count(), rows=ROWS, seq_len=SEQ_LEN,
                          rounds=arguments.rounds, seconds=arguments.seconds) + rows
    print(text)
    if arguments.write:
        pathlib.Path(arguments.write).write_text(text)


if __name__ == "__main__":
    main()
