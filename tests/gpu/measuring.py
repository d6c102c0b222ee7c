"""The stages of run_all.py that measure: peaks of the card, training of 1B and 8B, the same with torchtitan v0.2.2, and
a step by operation."""

import collections
import gzip
import json
import shutil
import sys

from running import check, figure, ran, row

FLOAT8 = ["--model.converters", "quantize.linear.float8"]
# Tried in this order until `titan estimate` says that the job fits, starting with the least
# recomputation.
WAYS = (
    ("all activations kept", ["--activation_checkpoint.mode", "none"], "none"),
    ("selective recomputation", ["--activation_checkpoint.mode", "selective", "--activation_checkpoint.selective_ac_option", "op"],
     "selective"),
    ("full recomputation", ["--activation_checkpoint.mode", "full"], "full"),
    ("full recomputation, weights in bf16", ["--activation_checkpoint.mode", "full", "--training.dtype", "bfloat16"], None),
)
ROOM = 0.95  # of the card's memory that an estimate may use: it ignores CUDA's context and fragmentation
MODELS = {"1B": 8192, "8B": 4096, "debugmodel": 128}


def speed(c):
    run = c.relay("device_probe", "--plugins", c.plugins, "speed", c.device, *(["--small"] if c.is_small else []), prefix="speed")
    check("device_probe speed ends well", run.code == 0, run.code, 0, None if run.code == 0 else run.why())


def memory_of_card(c):
    run = c.run("/usr/bin/env", "nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits", timeout=15)
    return float(run.stdout.split()[0]) * 2**20


def job(c, flavor, more=()):
    length = MODELS[flavor]
    return ["--job.config_file", "train_configs/debug_model.toml", "--device.name", c.device, "--model.flavor", flavor,
            "--training.seq_len", length, "--training.local_batch_size", 1, "--training.mixed_precision_param", "bfloat16", *more]


def way_that_fits(c, words):
    """(name, flags, torchtitan's mode) chosen by the estimate; None, with a failed check, when nothing
    fits."""
    if c.is_small:
        return WAYS[0]
    memory, said = memory_of_card(c), []
    jobs = {way[0]: lambda flags=way[1]: c.run("titan", "estimate", *words, *flags, "--ranks", 1, "--json", timeout=40)
            for way in WAYS}
    done = c.side_by_side(jobs)
    for way in WAYS:
        run = done[way[0]]
        if run.code != 0:
            said.append(f"{way[0]}: {run.why()}")
            continue
        peak = max(rank["peak_bytes"] for rank in json.loads(run.stdout)["ranks"])
        said.append(f"{way[0]}: {peak / 2**30:.1f} GiB")
        if peak <= ROOM * memory:
            return way
    check(f"a way to fit into {memory / 2**30:.1f} GiB", False, None, None, "; ".join(said))
    return None


def bench(c, name, words, way, steps, timeout):
    run = c.run("titan", "bench", *words, *way[1], "--warmup", steps[0], "--steps", steps[1], "--interval", steps[2], "--no-gemm",
                "--json", "-", "--keep", c.fresh(f"bench {name}"), timeout=timeout)
    if not ran(name, run):
        return
    figures = json.loads(run.stdout)["figures"]
    mfu = figures["mfu"]
    row("training", job=name, by="Titan", memory=way[0], tokens_per_second=round(figures["tokens_per_second"], 1),
        mfu_full_attention=mfu["full_attention"], mfu_causal_half=mfu["causal_half"], peak_gib=round(figures["peak_bytes"] / 2**30, 2),
        step_seconds=figures["step_seconds"]["median"], to_first_step=figures["to_first_step"],
        to_first_step_end=figures["to_first_step_end"])
    losses = figures["medians"].get("loss_metrics/global_avg_loss")
    check(f"{name}: the loss is a number", losses is not None and losses == losses, losses)


COMPILED = ["--compile.enable"]
JOBS = {  # name: flags, in the order of measurement
    "bfloat16": [],
    "float8 tensorwise": FLOAT8,
    "float8 rowwise": [*FLOAT8, "--quantize.linear.float8.recipe_name", "rowwise"],
    "bfloat16 weights, twice the tokens": ["--training.dtype", "bfloat16", "--training.local_batch_size", "2"],
    "float8 rowwise, bfloat16 weights, twice the tokens": [
        *FLOAT8, "--quantize.linear.float8.recipe_name", "rowwise", "--training.dtype", "bfloat16", "--training.local_batch_size", "2"],
    "bfloat16 compiled": COMPILED,
}


def training(c, flavor, jobs):
    steps = (1, 2, 1) if c.is_small else (5, 10, 5)
    for name in jobs:
        if not c.is_small and c.left() < 15:
            row("training", job=f"{flavor} {name}", by="Titan", memory="left out: no time")
            continue
        words = job(c, flavor, JOBS[name])
        if "float8" in name and c.is_small:
            words.append("--quantize.linear.float8.emulate")
        way = way_that_fits(c, words)
        if way:
            bench(c, f"{flavor} {name}", words, way, steps, c.left() - 2)


def train_1b(c):
    training(c, "debugmodel" if c.is_small else "1B", list(JOBS)[:2] if c.is_small else JOBS)


def train_8b(c):
    training(c, "debugmodel" if c.is_small else "8B", list(JOBS)[-1:] if c.is_small else JOBS)


def torchtitan(c, flavor):
    """torchtitan v0.2.2's own trainer on the same shapes: eager and compiled, bf16 and float8."""
    wheels = c.root / "wheels"
    if not wheels.is_dir():
        row("training", job=flavor, by="torchtitan v0.2.2", memory="left out: the bundle has no wheels")
        check("torchtitan is left out where the bundle has no wheels", True)
        return
    way = way_that_fits(c, job(c, flavor))
    if not way:
        return
    for name, more in (("bfloat16 compiled", ["--compile"]), ("bfloat16", []),
                       ("float8 tensorwise compiled", ["--compile", "--float8", "tensorwise"])):
        if c.left() < 20:
            row("training", job=f"{flavor} {name}", by="torchtitan v0.2.2", memory="left out: no time")
            continue
        run = c.run(sys.executable, c.root / "tests/gpu/torchtitan_side.py", "--flavor", flavor, "--seq-len", MODELS[flavor], "--batch", 1,
                    "--device", c.device, "--ac", way[2] or "full", *([] if way[2] else ["--weights", "bfloat16"]), "--wheels", wheels, *more,
                    timeout=c.left() - 2, TITAN_BENCH_WARMUP="4", TITAN_BENCH_STEPS="10")
        if not ran(f"torchtitan {flavor} {name}", run):
            continue
        figures = json.loads(run.stdout.strip().splitlines()[-1])
        row("training", job=f"{flavor} {name}", by="torchtitan v0.2.2", memory=way[0],
            tokens_per_second=round(figures["tokens_per_second"], 1), peak_gib=round(figures["peak_bytes"] / 2**30, 2),
            to_first_step=figures.get("to_first_step"))


def torchtitan_1b(c):
    torchtitan(c, "debugmodel" if c.is_small else "1B")


def torchtitan_8b(c):
    torchtitan(c, "debugmodel" if c.is_small else "8B")


def by_operation(c, flavor, length):
    """One profiled step: time by kernel, gaps between kernels."""
    words = job(c, flavor)
    way = way_that_fits(c, words)
    if not way:
        return
    folder = c.fresh("profile")
    run = c.run("titan", "train", *words, *way[1], "--training.seq_len", length, "--job.dump_folder", folder, "--training.steps", 5,
                "--metrics.log_freq", 5, "--metrics.loggers", "jsonl", "--metrics.no_enable_tensorboard",
                "--profiling.enable_profiling", "--profiling.profile_freq", 4, folder=folder)
    if not ran(f"a profiled run of {flavor}", run):
        return
    files = sorted(folder.glob("profile_traces/**/*trace.json.gz"))
    if not check("a trace was written", files != []):
        return
    shutil.copy(files[0], c.out / f"trace_{flavor}.json.gz")
    events = json.loads(gzip.decompress(files[0].read_bytes()))["traceEvents"]
    kernels = sorted((event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")),
                     key=lambda event: event["ts"])
    if not kernels:
        check("the trace has kernels of the GPU", c.is_small, 0)
        return
    begin, end = kernels[0]["ts"], max(event["ts"] + event["dur"] for event in kernels)
    busy, reached, gaps = 0.0, begin, collections.Counter()
    for event in kernels:
        start, stop = event["ts"], event["ts"] + event["dur"]
        if start > reached:
            gaps["over 100 us" if start - reached > 100 else "over 10 us" if start - reached > 10 else "shorter"] += start - reached
        busy += max(0.0, stop - max(start, reached))
        reached = max(reached, stop)
    figure(f"profiled step of {flavor}: GPU time from first to last kernel (ms)", (end - begin) / 1e3)
    figure(f"profiled step of {flavor}: GPU busy (share)", busy / (end - begin))
    figure(f"profiled step of {flavor}: kernels", len(kernels))
    for name, micros in gaps.items():
        figure(f"profiled step of {flavor}: gaps {name} (ms)", micros / 1e3)
    total = collections.defaultdict(lambda: [0, 0.0])
    for event in kernels:
        entry = total[event["name"]]
        entry[0] += 1
        entry[1] += event["dur"]
    for name, (calls, micros) in sorted(total.items(), key=lambda item: -item[1][1])[:45]:
        row(f"kernels of {flavor}", kernel=name[:160], calls=calls, milliseconds=round(micros / 1e3, 3),
            share_percent=round(100 * micros / (end - begin), 2))


def profile_8b(c):
    if c.is_small:
        return by_operation(c, "debugmodel", 128)
    by_operation(c, "8B", MODELS["8B"])
    if c.left() > 10:
        by_operation(c, "1B", MODELS["1B"])


def curves(c):
    """The debug model from the same weights and tokens in both programs; filled in by
    tests/gpu/curves.py."""
    import curves as comparison  # pylint: disable=import-outside-toplevel
    comparison.stage(c)


STAGES = {"speed": speed, "train_1B": train_1b, "train_8B": train_8b, "torchtitan_8B": torchtitan_8b, "torchtitan_1B": torchtitan_1b,
          "curves": curves, "profile_8B": profile_8b}
