#!/usr/bin/env python3
"""Memory and traffic of a rank on 8 to 4,096 GPUs: Titan's counters compared with formulas, and memory measured on real ranks.

Ranks of the large layouts are simulated (`comm.mode = "fake_backend"`): weights without memory, collectives without peers.
Judged: every printed figure equals scaling_formulas.py in all digits and no other traffic is printed; no rank takes a
minute of CPU time; on real CPU ranks the bytes sent agree within 0.1 % and the memory of the blocks within 10 %. The peak
including activations has no formula: it is shown, and must fall as context ranks are added.

    python3 tests/benchmarks/scaling.py                          # runs and judges; exit code 1 when a figure differs
    python3 tests/benchmarks/scaling.py --write docs/results/scaling.md  # and fills in the tables of the note
    python3 tests/benchmarks/scaling.py --quick                  # the smallest of each kind, simulated only

ctest sets TITAN_SOURCE_DIR and TITAN_PROGRAM.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

from scaling_formulas import DeepSeek, Layout, Model, held, sent

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
GIB = 2**30
PLAY_LIMIT = 60  # CPU seconds; a simulated rank needs about one
HANG = 1800
PEAK = "most at once, with activations"

MODELS = {
    "8B": Model(d=4096, layers=32, heads=32, kv_heads=8, ffn=14336, vocab=128256),
    "70B": Model(d=8192, layers=80, heads=64, kv_heads=8, ffn=28672, vocab=128256),
    "405B": Model(d=16384, layers=126, heads=128, kv_heads=8, ffn=53248, vocab=128256),
    "671B": DeepSeek(d=7168, layers=61, heads=128, kv_heads=128, ffn=18432, vocab=129280, q_rank=1536, kv_rank=512, nope=128, rope=64,
                     value=128, dense=3, experts=256, chosen=8, shared=1, expert_ffn=2048),
}
RECIPES = {name: "deepseek_v3_671b" if name == "671B" else f"llama3_{name.lower()}" for name in MODELS}
LAYOUTS = [
    *[("8B", Layout(shards=gpus)) for gpus in (8, 64, 512, 4096)],
    ("8B", Layout(shards=512, replicas=8)),
    *[(name, Layout(shards=gpus // 8, tensor=8)) for name in ("70B", "405B") for gpus in (8, 64, 512, 4096)],
    *[(name, Layout(shards=64, replicas=8, tensor=8)) for name in ("70B", "405B")],
    ("405B", Layout(shards=64, tensor=8, is_async=True)),
]
QUICK = [("8B", Layout(shards=8)), ("70B", Layout(shards=8, tensor=8))]

# All stages, and the first and the last rank of each, which are at different places among the data's
# shards.
STAGES = [("405B", Layout(stages=16, shards=32, tensor=8, batch=16)),
          ("70B", Layout(stages=8, shards=8, tensor=8, batch=16))]
QUICK_STAGES = STAGES[:1]
EXPERTS = [("671B", Layout(stages=8, shards=shards, experts=32, batch=16, sequence=4096)) for shards in (64, 256)]
QUICK_EXPERTS = EXPERTS[:1]
# 64 GPUs: the first has each sequence on one rank.
CONTEXT = [("8B", Layout(shards=64 // context, context=context, sequence=32768, is_ring=is_ring))
           for is_ring in (False, True) for context in ((2, 4, 8) if is_ring else (1, 2, 4, 8))]
QUICK_CONTEXT = CONTEXT[1:2] + CONTEXT[5:6]

# Blocks of 3.4 million parameters and almost no tokens: with the number of blocks only their state grows.
MEASURED = {few: Model(d=512, layers=few, heads=16, kv_heads=16, ffn=1536, vocab=2048) for few in (4, 12)}
MEASURED_RANKS = (1, 2, 4)
MEASURED_SEQUENCE = 16


def titan(*arguments, timeout, **environment):
    done = subprocess.run([TITAN, *map(str, arguments)], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1", **environment}, timeout=timeout)
    if done.returncode != 0:
        raise RuntimeError(f"titan {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def layout_flags(layout):
    return ["--parallelism.data_parallel_replicate_degree", layout.replicas,
            "--parallelism.data_parallel_shard_degree", layout.shards,
            "--parallelism.tensor_parallel_degree", layout.tensor,
            "--parallelism.context_parallel_degree", layout.context,
            "--parallelism.context_parallel_rotate_method", "alltoall" if layout.is_ring else "allgather",
            "--parallelism.pipeline_parallel_degree", layout.stages,
            f"--parallelism.{'' if layout.is_async else 'no_'}enable_async_tensor_parallel",
            "--parallelism.expert_parallel_degree", layout.experts,
            "--training.local_batch_size", layout.batch, "--training.seq_len", layout.sequence]


def play(flags, layout, rank):
    """{figure: (bytes, calls or None)} of one simulated rank, and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = titan("train", *flags, *layout_flags(layout), "--comm.mode", "fake_backend", "--rank", rank, "--world-size",
                 layout.ranks, timeout=HANG)
    rows = re.findall(r"^  (\S.*?) +[\d.]+ GiB +(\d+) bytes(?:  in (\d+) calls)?$", text, re.MULTILINE)
    if len(rows) != len(text.splitlines()) - 2:  # two headings
        raise RuntimeError(f"unexpected output of a played rank:\n{text}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if took > PLAY_LIMIT:
        raise RuntimeError(f"a played rank took {took:.0f} CPU seconds")
    return {name: (int(size), int(calls) if calls else None) for name, size, calls in rows}, took


def predict(model, layout, rank):
    """The expected result of `play`."""
    return {name: (size, None) for name, size in held(model, layout, rank).items()} | sent(model, layout, rank)


def differences(what, printed, predicted):
    """Held bytes must be equal; sent bytes may differ by two bytes of rounding per call."""
    def fits(name):
        (size, calls), (wanted, wanted_calls) = printed.get(name, (-1, -1)), predicted.get(name, (-1, -1))
        return calls == wanted_calls and abs(size - wanted) <= 2 * (calls or 0)
    return [f"{what}, {name}: counted {printed.get(name)}, formula {predicted.get(name)}"
            for name in sorted((printed.keys() | predicted.keys()) - {PEAK}) if not fits(name)]


def recipe_flags(name):
    """Flags for the job's model, without features that are not counted here."""
    return ["--job.config_file", f"train_configs/{RECIPES[name]}.toml", "--training.dataset", "jsonl",
            "--parallelism.pipeline_parallel_schedule", "1F1B",
            "--activation_checkpoint.mode", "none", "--checkpoint.no_enable", "--profiling.no_enable_profiling",
            "--metrics.no_enable_tensorboard", "--compile.no_enable", "--model.converters", ""]


def amount(value):
    return f"{value:.2f}" if value else "–"


def judge_played(name, layout):
    """One row of the table and its problems. Judges the first and the last rank, because the last chunks of rows may be shorter."""
    model, problems, seconds, together = MODELS[name], [], [], []
    for rank in (0, layout.ranks - 1):
        printed, took = play(recipe_flags(name), layout, rank)
        problems += differences(f"{name}, {layout}, rank {rank}", printed, predict(model, layout, rank))
        together.append(f"{printed['together'][0] / GIB:.4f}")
        seconds.append(took)
    traffic = {figure: size / GIB for figure, (size, _) in sent(model, layout).items()}
    parts = ["fsdp all_gather", "fsdp reduce_scatter", "dp_replicate all_reduce"]
    tensor = sum(size for figure, size in traffic.items() if figure.startswith("tp "))
    mflop = model.flops_per_token(layout.sequence) * layout.batch * layout.sequence / layout.tensor / 1e6
    data = sum(traffic.get(part, 0) for part in parts)
    cells = [name, f"{layout.ranks:,}", str(layout), f"{16 * model.parameters / layout.shards / layout.tensor / GIB:.4f}",
             *together, *(amount(traffic.get(part, 0)) for part in parts), amount(tensor),
             amount(data * GIB / mflop), amount(tensor * GIB / mflop), f"{max(seconds):.1f}"]
    return "| " + " | ".join(cells) + " |", problems


def judge_context(name, layout):
    """One row: the traffic of context ranks, and how much lower the peak of each is."""
    model = MODELS[name]
    printed, took = play(recipe_flags(name), layout, layout.ranks - 1)
    problems = differences(f"{name}, {layout}", printed, predict(model, layout, layout.ranks - 1))
    size = {figure: bytes / GIB for figure, (bytes, _) in printed.items()}
    alone = size[PEAK] - size["together"]
    if layout.context > 1:
        whole = Layout(shards=layout.fsdp, sequence=layout.sequence)
        printed, _ = play(recipe_flags(name), whole, whole.ranks - 1)
        alone = (printed[PEAK][0] - printed["together"][0]) / GIB
    share = (size[PEAK] - size["together"]) / alone
    if not 1 / layout.context - 0.01 <= share <= 1.25 / layout.context:
        problems.append(f"{name}, {layout}: activations are {share:.3f} of those without context ranks")
    mflop = model.flops_per_token(layout.sequence) * layout.tokens / 1e6
    forth = size.get("cp all_gather", 0) + size.get("cp send", 0)
    cells = [name, f"{layout.ranks:,}", str(layout), f"{layout.sequence:,}", f"{size['together']:.4f}", f"{size[PEAK]:.2f}",
             f"{share:.3f}", amount(forth), amount(size.get("cp reduce_scatter", 0)),
             amount((forth + size.get("cp reduce_scatter", 0)) * GIB / mflop), f"{took:.1f}"]
    return "| " + " | ".join(cells) + " |", problems


def judge_stages(name, layout):
    """A row for each stage of a pipeline, and problems. Judged: the first and the last rank of every stage, and that
    1F1B keeps one microbatch less from stage to stage."""
    model, problems, rows, peaks = MODELS[name], [], [], []
    per_stage = layout.ranks // layout.stages
    for stage in range(layout.stages):
        part, seconds, together, first = model.part(layout.stages, stage), [], [], {}
        for rank in (stage * per_stage, (stage + 1) * per_stage - 1):
            printed, took = play(recipe_flags(name), layout, rank)
            problems += differences(f"{name}, {layout}, rank {rank}", printed, predict(model, layout, rank))
            size = {figure: bytes / GIB for figure, (bytes, _) in printed.items()}
            first = first or size
            together.append(f"{size['together']:.4f}")
            seconds.append(took)
        peaks.append(first[PEAK])
        tensor = sum(value for figure, value in first.items() if figure.startswith("tp "))
        cells = [name, f"{layout.ranks:,}", str(layout), str(stage),
                 f"{part.blocks}" + part.has_embedding * " + embedding" + part.has_head * " + head",
                 f"{model.parameters_of(part) / 1e9:.2f}", *together, f"{first[PEAK]:.1f}", amount(first["fsdp all_gather"]),
                 amount(first["fsdp reduce_scatter"]), amount(tensor), amount(first["pp send"]), f"{max(seconds):.1f}"]
        rows.append("| " + " | ".join(cells) + " |")
    parts = [model.part(layout.stages, stage) for stage in range(layout.stages)]
    falls = [peaks[i] - peaks[i + 1] for i in range(layout.stages - 1) if parts[i] == parts[i + 1]]
    if not 0 < max(falls) < 1.02 * min(falls):
        problems.append(f"{name}, {layout}: what stages hold at once falls by {falls} GiB from stage to stage")
    return "\n".join(rows), problems


def judge_experts(name, layout):
    """A row for the first, a middle and the last stage: the first and the last rank of each are judged."""
    model, problems, rows = MODELS[name], [], []
    per_stage = layout.ranks // layout.stages
    for stage in (0, layout.stages // 2, layout.stages - 1):
        part, seconds, together = model.part(layout.stages, stage), [], []
        for rank in (stage * per_stage, (stage + 1) * per_stage - 1):
            printed, took = play(recipe_flags(name), layout, rank)
            problems += differences(f"{name}, {layout}, rank {rank}", printed, predict(model, layout, rank))
            together.append(f"{printed['together'][0] / GIB:.4f}")
            seconds.append(took)
        size = {figure: amount(bytes / GIB) for figure, (bytes, _) in printed.items()}
        cells = [name, f"{layout.ranks:,}", str(layout), str(stage), f"{model.blocks_with_experts(part)} of {part.blocks}",
                 f"{model.parameters_of(part) / 1e9:.2f}", *together, size["ep all_to_all"], size["fsdp all_gather"],
                 size["fsdp-ep all_gather"], size["fsdp reduce_scatter"], size["fsdp-ep reduce_scatter"], size["pp send"],
                 f"{max(seconds):.1f}"]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows), problems


def measure(layers, layout):
    """(peak memory in GiB, MiB sent per step) of rank 0 in a real run: the minimum over the steps after the first, in each of
    which all state exists and messages that happen to overlap add to it."""
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        start = ["train"]
        if layout.ranks > 1:
            start = ["launch", "--nproc", layout.ranks, "--log-dir", f"{folder}/logs", "--", "train"]
        # the C library must return freed memory at once, because memory that it keeps is not held
        # by the run
        titan(*start, *measured_flags(layers), *layout_flags(layout), "--training.steps", 5, "--job.dump_folder", folder,
              timeout=HANG, MALLOC_MMAP_THRESHOLD_="65536")
        later = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()][1:]
    return (min(line["memory/max_active(GiB)"] for line in later),
            later[-1].get("comm_metrics/sent_per_step(MiB)", 0.0))


def measured_flags(layers):
    return ["--job.config_file", "train_configs/debug_model.toml", "--metrics.no_enable_tensorboard",
            "--metrics.log_freq", 1, "--model.dim", 512, "--model.n_layers", layers]


def judge_measured(ranks):
    layout = Layout(shards=ranks, sequence=MEASURED_SEQUENCE, wire=4)
    few, many = MEASURED
    problems, peaks, counted = [], {}, {}
    for layers, model in MEASURED.items():
        printed, _ = play(measured_flags(layers), layout, 0)
        problems += differences(f"measured model of {layers} blocks, {ranks} ranks", printed, predict(model, layout, 0))
        peaks[layers], mib_sent = measure(layers, layout)
        counted[layers] = held(model, layout)["together"] / GIB
    formula = sum(size for size, _ in sent(MEASURED[many], layout).values()) / 2**20
    if abs(mib_sent - formula) > 1e-3 * formula:
        problems.append(f"{ranks} real ranks, {many} blocks: sent {mib_sent} MiB per step, formula {formula}")
    expected, grown = counted[many] - counted[few], peaks[many] - peaks[few]
    if abs(grown - expected) > 0.1 * expected:
        problems.append(f"{ranks} real ranks: {many - few} blocks take {grown:.4f} GiB, counted {expected:.4f}")
    row = (f"| {ranks} | {counted[many]:.4f} | {expected:.4f} | {peaks[few]:.4f} | {peaks[many]:.4f} | {grown:.4f} | "
           f"{grown / expected:.3f} | {mib_sent:.3f} | {formula:.3f} |")
    return row, problems


def run_all(what, judge, cases):
    """The rows of one table and all problems; prints each row as it comes."""
    rows, problems = [], []
    for case in cases:
        try:
            row, wrong = judge(*case)
            rows.append(row)
            print(row, flush=True)
        except (RuntimeError, OSError, KeyError, subprocess.TimeoutExpired) as error:
            wrong = [f"{what} {case}: {error}"]
        for problem in wrong:
            print("FAILED", problem, flush=True)
        problems += wrong
    return rows, problems


def fill_in(text, name, rows):
    """`text` with `rows` as the body of the table between the comments "<!-- name -->" and "<!-- end -->"."""
    pattern = rf"(<!-- {name} -->\n\|[^\n]*\n\|[-|]+\n).*?(<!-- end -->)"
    text, count = re.subn(pattern, lambda found: found[1] + "\n".join(rows) + "\n" + found[2], text, flags=re.DOTALL)
    if count != 1:
        raise RuntimeError(f"the note has {count} tables '{name}'")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE", type=pathlib.Path, help="the note whose tables are filled in")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.write and arguments.quick:
        parser.error("--quick runs too little to write the note")
    start = time.monotonic()
    quick, tables, problems = arguments.quick, {}, []
    for name, judge, cases in [("played", judge_played, QUICK if quick else LAYOUTS),
                               ("stages", judge_stages, QUICK_STAGES if quick else STAGES),
                               ("experts", judge_experts, QUICK_EXPERTS if quick else EXPERTS),
                               ("context", judge_context, QUICK_CONTEXT if quick else CONTEXT),
                               ("measured", judge_measured, [] if quick else [(ranks,) for ranks in MEASURED_RANKS])]:
        tables[name], wrong = run_all(name, judge, cases)
        problems += wrong
    print(f"{sum(map(len, tables.values()))} layouts, {len(problems)} problems, {time.monotonic() - start:.0f} s")
    if problems:
        return 1
    if arguments.write:
        text = arguments.write.read_text()
        for name, rows in tables.items():
            text = fill_in(text, name, rows)
        arguments.write.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
