"""Measures generation: tokens per second of titan generate and of transformers' generate in turns, and the speed of reading memory.

  .venv/bin/python tests/benchmarks/generate_speed.py [--threads 2] [--rounds 5] [--write docs/guides/generating.md]

A llama of about 100 million parameters with random weights, one greedy sequence at a time. Generating a token reads all weights
once, so the time to read as many bytes is a lower bound. Machines are noisy: both run in turns, and the result is the ratio of
both in one round. --write replaces the table between the marks in that file.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPT = list(range(5, 13))
BEGIN, END = "<!-- generate_speed.py -->", "<!-- end of generate_speed.py -->"


def make_model(folder):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=12, vocab_size=20000,
        max_position_embeddings=2048, rope_parameters={"rope_type": "default", "rope_theta": 500000.0}, tie_word_embeddings=True)).eval()
    model.save_pretrained(folder)
    return model


def of_transformers(model, tokens):
    """Seconds of a greedy generation by transformers, and its ids."""
    import torch
    ids = torch.tensor([PROMPT])
    start = time.perf_counter()
    with torch.inference_mode():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False, eos_token_id=None,
                             pad_token_id=0)
    return time.perf_counter() - start, out[0, len(PROMPT):].tolist()


def of_titan(titan, folder, tokens, threads, *flags):
    prompts = folder / "prompts.jsonl"
    prompts.write_text(json.dumps({"prompt_ids": PROMPT}) + "\n")
    run = subprocess.run([titan, "generate", "--checkpoint", folder / "hf", "--prompts", prompts, "--max-new-tokens", str(tokens),
                          "--ignore-eos", "--json", *flags], env=os.environ | {"OMP_NUM_THREADS": str(threads)}, capture_output=True,
                         text=True)
    if run.returncode:
        sys.exit(run.stderr)
    seconds = float(re.search(r"in ([0-9.]+) s: ", run.stderr)[1])
    return seconds, json.loads(run.stdout)["ids"]


def read_rate(mebibytes=400):
    """GB/s of summing a tensor of that size, the best of 5."""
    import torch
    data = torch.ones(mebibytes << 18)
    best = 0.0
    for _ in range(5):
        start = time.perf_counter()
        data.sum()
        best = max(best, data.numel() * 4 / (time.perf_counter() - start) / 1e9)
    return best


def spread(values):
    return f"{min(values):.1f} | {statistics.median(values):.1f} | {max(values):.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--titan", default=os.environ.get("TITAN_PROGRAM", ROOT / "build/release/bin/titan"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--write", type=pathlib.Path)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    import torch
    torch.set_num_threads(arguments.threads)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = make_model(folder / "hf")
        narrow = type(model).from_pretrained(folder / "hf", dtype=torch.bfloat16).eval()
        size = sum(weight.numel() for weight in model.parameters())
        of_transformers(model, 4), of_transformers(narrow, 4)
        rates, rows = [], {"fp32": ([], [], []), "bf16": ([], [], [])}
        for _ in range(arguments.rounds):
            rates.append(read_rate())
            for dtype, network, flags in (("fp32", model, []), ("bf16", narrow, ["--training.dtype", "bfloat16"])):
                theirs, wanted = of_transformers(network, arguments.tokens)
                ours, found = of_titan(arguments.titan, folder, arguments.tokens, arguments.threads, *flags)
                if dtype == "fp32" and wanted != found:
                    sys.exit(f"transformers generates {wanted}, titan {found}")
                for values, value in zip(rows[dtype], (arguments.tokens / ours, arguments.tokens / theirs, theirs / ours)):
                    values.append(value)
    lines = [f"{size / 1e6:.0f} million parameters, {arguments.threads} threads, {arguments.rounds} rounds of {arguments.tokens} tokens;"
             f" reading memory: {statistics.median(rates):.1f} GB/s.", "", "| | minimum | median | maximum |", "|---|---|---|---|"]
    for dtype, (ours, theirs, ratio) in rows.items():
        lines += [f"| titan, {dtype}, tokens/s | {spread(ours)} |", f"| transformers, {dtype}, tokens/s | {spread(theirs)} |",
                  f"| ratio, {dtype} | {spread(ratio)} |"]
    table = "\n".join(lines)
    print(table)
    if arguments.write:
        text = arguments.write.read_text()
        before, after = text[:text.index(BEGIN)], text[text.index(END):]
        arguments.write.write_text(f"{before}{BEGIN}\n{table}\n{after}")


if __name__ == "__main__":
    main()
