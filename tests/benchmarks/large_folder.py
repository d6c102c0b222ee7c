#!/usr/bin/env python3
"""Measures the memory that `titan convert` needs to plan and convert DeepSeek-V3 671B in float8 with block scales, in its true shapes.

    .venv/bin/python tests/benchmarks/large_folder.py [--work FOLDER] [--layers 4]

Writes a folder as published (config.json, 163 files, 91,000 tensors, 688 GB) of sparse files, which read as zeros and take
next to no disk. Judged, by the peak of the process (VmHWM):

- planned: `titan convert from-hf` of all files: every header is read, every tensor matched to the model, every output file laid
  out; then it reports that the disk is too small for 1.3 TB, or is stopped once it has written --planned bytes
- converted: the first --layers blocks completely (3 dense ones and one of 256 experts: 29 GB of bf16, really written)

Exit code 1 when one fails or takes more than --limit GiB.
"""

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
SHARD = 4_300_000_000
D, HEADS, EXPERTS, DENSE, VOCAB = 7168, 128, 256, 3, 129280
CONFIG = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "attention_bias": False, "hidden_act": "silu",
          "hidden_size": D, "intermediate_size": 18432, "moe_intermediate_size": 2048, "first_k_dense_replace": DENSE,
          "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "n_routed_experts": EXPERTS, "n_shared_experts": 1,
          "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
          "scoring_func": "sigmoid", "topk_method": "noaux_tc", "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": 1536,
          "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000,
          "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1,
                           "mscale": 1.0, "mscale_all_dim": 1.0},
          "max_position_embeddings": 163840, "tie_word_embeddings": False, "vocab_size": VOCAB, "num_nextn_predict_layers": 1,
          "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128],
                                  "activation_scheme": "dynamic"}}


def tensors(layers):
    """(name, type, shape) of the published tensors; with all layers, including the one that predicts a second token."""
    def product(name, rows, columns):
        yield f"{name}.weight", "F8_E4M3", (rows, columns)
        yield f"{name}.weight_scale_inv", "F32", (math.ceil(rows / 128), math.ceil(columns / 128))

    def feed_forward(name, hidden):
        for part, rows, columns in (("gate_proj", hidden, D), ("up_proj", hidden, D), ("down_proj", D, hidden)):
            yield from product(f"{name}.{part}", rows, columns)

    def block(layer):
        name = f"model.layers.{layer}"
        yield f"{name}.input_layernorm.weight", "BF16", (D,)
        yield f"{name}.post_attention_layernorm.weight", "BF16", (D,)
        yield f"{name}.self_attn.q_a_layernorm.weight", "BF16", (1536,)
        yield f"{name}.self_attn.kv_a_layernorm.weight", "BF16", (512,)
        for part, rows, columns in (("q_a_proj", 1536, D), ("q_b_proj", HEADS * 192, 1536), ("kv_a_proj_with_mqa", 576, D),
                                    ("kv_b_proj", HEADS * 256, 512), ("o_proj", D, HEADS * 128)):
            yield from product(f"{name}.self_attn.{part}", rows, columns)
        if layer < DENSE:
            yield from feed_forward(f"{name}.mlp", 18432)
            return
        yield f"{name}.mlp.gate.weight", "BF16", (EXPERTS, D)
        yield f"{name}.mlp.gate.e_score_correction_bias", "F32", (EXPERTS,)
        yield from feed_forward(f"{name}.mlp.shared_experts", 2048)
        for expert in range(EXPERTS):
            yield from feed_forward(f"{name}.mlp.experts.{expert}", 2048)

    yield "model.embed_tokens.weight", "BF16", (VOCAB, D)
    for layer in range(layers):
        yield from block(layer)
    yield "model.norm.weight", "BF16", (D,)
    yield "lm_head.weight", "BF16", (VOCAB, D)
    if layers == 61:
        yield "model.layers.61.enorm.weight", "BF16", (D,)
        yield "model.layers.61.hnorm.weight", "BF16", (D,)
        yield from product("model.layers.61.eh_proj", D, 2 * D)
        yield from block(61)


def write(folder, layers):
    """Writes real headers and holes for the data. Returns the number of tensors and their bytes."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": layers}))
    files, size = [[]], 0
    for name, kind, shape in tensors(layers):
        bytes_ = math.prod(shape) * {"F8_E4M3": 1, "BF16": 2, "F32": 4}[kind]
        if size + bytes_ > SHARD:
            files.append([])
            size = 0
        files[-1].append((name, kind, shape, bytes_))
        size += bytes_
    index = {}
    for number, held in enumerate(files, 1):
        file = f"model-{number:05}-of-{len(files):06}.safetensors"
        header, offset = {}, 0
        for name, kind, shape, bytes_ in held:
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [offset, offset + bytes_]}
            offset += bytes_
            index[name] = file
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(folder / file, "wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            out.truncate(8 + len(text) + offset)
    total = sum(bytes_ for held in files for *_, bytes_ in held)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": index}))
    return len(index), total


def peak_of(process):
    """Peak memory of a running process in GiB."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0) / 2**20


def written(folder):
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file()) if folder.exists() else 0


def convert(source, out, enough, log):
    """(is correct, peak GiB, seconds) of a conversion that is stopped after `enough` bytes; 0: not stopped."""
    start, peak = time.monotonic(), 0
    layers = json.loads((source / "config.json").read_text())["num_hidden_layers"]
    model = ["--model.name", "deepseek_v3", "--model.flavor", "671B", "--model.norm_eps", "1e-6", "--model.yarn", "always",
             "--model.n_layers", str(layers)]
    process = subprocess.Popen([TITAN, "convert", "from-hf", source, out, "--dtype", "bfloat16", *model], cwd=ROOT,
                               stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    while process.poll() is None:
        peak = max(peak, peak_of(process))
        if enough and written(out) >= enough:
            process.kill()
            return process.wait() < 0, peak, time.monotonic() - start
        time.sleep(0.1)
    log.flush()
    needed = re.search(r"needs (\d+) bytes more", pathlib.Path(log.name).read_text())
    is_planned = enough and needed and int(needed[1]) > 2 * 671_026_404_352
    return bool(is_planned if enough else process.returncode == 0), peak, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, help="where the folders are made (default: a temporary one)")
    parser.add_argument("--layers", type=int, default=4, help="blocks that are converted; 0: none")
    parser.add_argument("--planned", type=float, default=8e9, help="bytes after which the conversion of the whole is stopped")
    parser.add_argument("--limit", type=float, default=4, help="GiB")
    arguments = parser.parse_args()
    problems = []
    with tempfile.TemporaryDirectory(dir=arguments.work) as temporary:
        folder = pathlib.Path(temporary)
        for what, layers, enough in (("planned", 61, arguments.planned), ("converted", arguments.layers, 0)):
            if not layers:
                continue
            count, size = write(folder / what, layers)
            log = folder / f"{what}.log"
            with log.open("w") as file:
                is_right, peak, seconds = convert(folder / what, folder / "out", enough, file)
            print(f"{what}: {layers} blocks, {count:,} tensors, {size / 1e9:.0f} GB, {written(folder / 'out') / 1e9:.1f} GB written, "
                  f"peak {peak:.2f} GiB, {seconds:.0f} s", flush=True)
            if not is_right or peak > arguments.limit:
                problems.append(f"{what}: peak {peak:.2f} GiB\n{log.read_text()[-3000:]}")
            shutil.rmtree(folder / "out", ignore_errors=True)
    for problem in problems:
        print("FAILED", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
