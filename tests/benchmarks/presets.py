#!/usr/bin/env python3
"""Memory and FLOPs of every preset of train_configs, by `titan estimate`, and torchtitan's published figures of such runs.

    .venv/bin/python tests/benchmarks/presets.py                          # prints the tables; half a minute
    .venv/bin/python tests/benchmarks/presets.py --write docs/results/presets.md  # and fills them in
    .venv/bin/python tests/benchmarks/presets.py --check docs/results/presets.md  # exit code 1 when the page differs

The preset states its number of GPUs: "# Hardware: 64 GPUs", or "..._8gpu.toml".
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
GIB = 2**30
H100_BF16 = 989e12  # FLOP/s of an H100 SXM, dense, as v0.2.2 takes it for its MFU

DECEMBER = "benchmarks/llama3_h100_202412_torchtitan.md"
JUNE = "benchmarks/llama3_8b_h200_2025-06_torchtitan.md"
# (page, layout, flavor, GPUs, sequences per rank, tokens per sequence, flags, [(technique, tokens/s per GPU,
# GiB)])
COMPILED = "torch.compile + float8"
PUBLISHED = [
    (DECEMBER, "8B, FSDP 8", "8B", 8, 2, 8192, [], [("eager", 5762, 82.4), ("torch.compile", 6667, 77.0), (COMPILED, 8532, 76.8)]),
    (DECEMBER, "8B, FSDP 128", "8B", 128, 2, 8192, [], [("eager", 5605, 67.0), ("torch.compile", 6514, 62.0), (COMPILED, 8380, 61.8)]),
    (DECEMBER, "8B, FSDP 8, 32k", "8B", 8, 1, 32768, ["full"], [(COMPILED, 3890, 83.9)]),
    (DECEMBER, "8B, FSDP 4, CP 2, 64k", "8B", 8, 1, 65536, ["full", "context", 2], [(COMPILED, 2540, 84.2)]),
    (DECEMBER, "8B, FSDP 2, CP 4, 128k", "8B", 8, 1, 131072, ["full", "context", 4], [(COMPILED, 1071, 84.0)]),
    (DECEMBER, "8B, CP 8, 256k", "8B", 8, 1, 262144, ["full", "context", 8], [(COMPILED, 548, 84.5)]),
    (DECEMBER, "70B, FSDP 32, TP 8", "70B", 256, 16, 8192, ["full", "tensor", 8],
     [(COMPILED, 829, 71.9), (COMPILED + ", asynchronous TP", 876, 67.6)]),
    (DECEMBER, "405B, FSDP 8, TP 8, PP 8, 1F1B", "405B", 512, 32, 8192, ["full", "tensor", 8, "1F1B"],
     [(COMPILED + ", asynchronous TP", 100, 82.5)]),
    (DECEMBER, "405B, FSDP 8, TP 8, PP 8, interleaved", "405B", 512, 32, 8192, ["full", "tensor", 8, "Interleaved1F1B"],
     [(COMPILED + ", asynchronous TP", 128, 72.7)]),
    *((DECEMBER, f"405B, FSDP {8 // cp}, CP {cp}, TP 8, PP 8, {32 * cp}k", "405B", 512, 8, 32768 * cp,
       ["full", "tensor", 8, *(["context", cp] if cp > 1 else []), "1F1B"], [(COMPILED + ", asynchronous TP", speed, memory)])
      for cp, speed, memory in ((1, 76, 75.3), (2, 47, 75.9), (4, 31, 77.1), (8, 16, 84.9))),
    (JUNE, "8B, FSDP 32, H200", "8B", 32, 2, 8192, [], [(COMPILED, 10938, 47.96)]),
    (JUNE, "8B, FSDP 64, H200", "8B", 64, 2, 8192, [], [(COMPILED, 10753, 46.97)]),
]


def estimate(*arguments):
    done = subprocess.run([TITAN, "estimate", "--json", *map(str, arguments)], cwd=ROOT, stdin=subprocess.DEVNULL, timeout=600,
                          capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        raise RuntimeError(f"titan estimate {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def presets():
    """(path, GPUs) of each preset; 1 GPU if the preset does not say."""
    for path in [path for folder in ("", "layouts", "legacy") for path in sorted((ROOT / "train_configs" / folder).glob("*.toml"))]:
        said = re.search(r"^# Hardware: (\d+) .*GPUs", path.read_text(), re.M) or re.search(r"_(\d+)gpu\.toml$", path.name)
        yield path, int(said[1]) if said else 1


def sent(found):
    """GiB sent per step by a rank of the largest stage, by group."""
    traffic = {}
    for entry in found["ranks"][found["largest_pipeline_rank"]]["traffic"]:
        traffic[entry["group"]] = traffic.get(entry["group"], 0) + entry["bytes"]
    return {group: count for group, count in traffic.items() if count > 2**20}


def of_presets():
    lines = ["| preset | GPUs | parameters | tokens a step | FLOPs a token | FLOPs a step | of that a GPU | memory a GPU (GiB) "
             "| highest in | a GPU sends (GiB a step) |", "|---|---:|---:|---:|---:|---:|---:|---:|---|---|"]
    for path, ranks in presets():
        found = estimate("--job.config_file", path.relative_to(ROOT), "--ranks", ranks)
        rank = found["ranks"][found["largest_pipeline_rank"]]
        traffic = ", ".join(f"{group} {count / GIB:,.2f}" for group, count in sent(found).items()) or "nothing"
        step = found["flops_per_step"]["causal_half"]
        lines.append(f"| {path.relative_to(ROOT / 'train_configs')} | {ranks} | {found['num_parameters']:,} | "
                     f"{found['tokens_per_step']:,} | {found['flops_per_token']['causal_half']:.4g} | {step:.4g} | {step / ranks:.4g} | "
                     f"{rank['peak_bytes'] / GIB:,.2f} | {rank['peak_place']} | {traffic} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def published_flags(flavor, batch, length, more):
    flags = ["--model.name", "llama3", "--model.flavor", flavor, "--training.local_batch_size", batch, "--training.seq_len", length,
             "--training.dataset", "synthetic", "--metrics.loggers", "jsonl"]
    flags += (["--activation_checkpoint.mode", "full"] if "full" in more else
              ["--activation_checkpoint.mode", "selective", "--activation_checkpoint.selective_ac_option", "op"])
    for axis in ("tensor", "context"):
        if axis in more:
            flags += [f"--parallelism.{axis}_parallel_degree", more[more.index(axis) + 1]]
    if more and more[-1] in ("1F1B", "Interleaved1F1B"):
        flags += ["--parallelism.pipeline_parallel_degree", 8, "--parallelism.pipeline_parallel_schedule", more[-1]]
    return flags


def of_published():
    lines = ["| layout | technique | published: tokens/s a GPU | published: GiB | FLOPs a token, by us | that makes TFLOP/s a GPU "
             "| of 989 | estimate (GiB) | a GPU sends (GiB a step) | page |", "|---|---|---:|---:|---:|---:|---:|---:|---|---|"]
    for page, layout, flavor, ranks, batch, length, more, figures in PUBLISHED:
        found = estimate("--ranks", ranks, *published_flags(flavor, batch, length, more))
        per_token = found["flops_per_token"]["full_attention"]
        peak = found["ranks"][found["largest_pipeline_rank"]]["peak_bytes"] / GIB
        traffic = ", ".join(f"{group} {count / GIB:,.2f}" for group, count in sent(found).items())
        for technique, speed, memory in figures:
            share = f"{100 * speed * per_token / H100_BF16:.1f} %" if "float8" not in technique else ""
            lines.append(f"| {layout} | {technique} | {speed:,} | {memory} | {per_token:.4g} | {speed * per_token / 1e12:,.0f} | {share} | "
                         f"{peak:,.1f} | {traffic} | {'December 2024' if page == DECEMBER else 'June 2025'} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return lines


def filled(text, name, lines):
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.S)
    if not pattern.search(text):
        raise RuntimeError(f"the page has no place for table '{name}'")
    return pattern.sub(lambda m: m[1] + "\n".join(lines) + "\n" + m[2], text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--check", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    tables = {"presets": of_presets(), "published": of_published()}
    page = options.write or options.check
    if not page:
        print("\n\n".join("\n".join(lines) for lines in tables.values()))
        return 0
    before = text = page.read_text()
    for name, lines in tables.items():
        text = filled(text, name, lines)
    if options.write:
        page.write_text(text)
    elif text != before:
        print(f"{page} is not what titan estimate says; run this script with --write {page}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
