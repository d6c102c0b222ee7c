"""One stage of run_all.py, in its own process: `checks.py STAGE --root DIR --programs DIR --device NAME --out DIR
--seconds N`.

Prints JSON lines that run_all.py reads: checks, figures and rows of tables (running.py). Exit code 0 also when a check
failed. `checks.py expected --device cpu` prints the losses of all jobs that a GPU is compared with; tools/gpu_bundle.sh
keeps them as expected.json.
"""

import argparse
import gzip
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

import measuring
import sanitizing
from running import Context, check, figure, largest_difference, ran, row, same_tensors, within

BF16 = ["--training.mixed_precision_param", "bfloat16"]
# On a GPU attention's backward adds in a different order each time unless it must be deterministic, as in
# PyTorch.
EXACT = ["--debug.deterministic"]
FUSED = ["--compile.enable", "--compile.no_graphs"]
# Jobs whose losses on the CPU are in the bundle: recipe, flags, and the largest relative difference of a GPU's first
# loss and of all its losses. In fp32 only the order of sums differs; in bf16 a kernel may round elsewhere, by 2^-9 each
# time.
FIRST_STEPS = {
    "fp32": ("debug_model", [], 1e-5, 1e-3),
    "fp32 fused": ("debug_model", FUSED, 1e-5, 1e-3),
    "bf16": ("debug_model", BF16, 2e-3, 1e-2),
    "bf16 fused": ("debug_model", [*FUSED, *BF16], 2e-3, 1e-2),
    "fp32 documents": ("debug_model", ["--data.isolate_documents"], 1e-5, 1e-3),
    "bf16 documents": ("debug_model", ["--data.isolate_documents", *BF16], 2e-3, 1e-2),
    "bf16 weights": ("debug_model", ["--training.dtype", "bfloat16", *BF16], 2e-3, 2e-2),
}
# A router whose logits differ in the last bit may choose another expert, so models with experts have larger
# limits.
FAMILIES = {
    f"{family} {kind}": (family, flags, first, whole)
    for family, room in (("qwen3_debug", 1), ("mixtral_debug", 10), ("qwen3_moe_debug", 10), ("deepseek_v3_debug", 10),
                         ("llama4_debug", 10), ("gpt_oss_debug", 10))
    for kind, flags, first, whole in (("fp32", [], 1e-5, 1e-3 * room), ("bf16", BF16, 4e-3, 1e-2 * room))
}
# Conversations of different lengths packed into rows, with padding that neither loss, router nor attention may
# count.
PADDED = ["--training.dataset", "messages", "--training.dataset_path", "tests/assets/chat/train.jsonl", "--data.packing", "best_fit",
          "--data.isolate_documents", "--data.too_long", "skip", "--chat_template.name", "jinja", "--chat_template.file",
          "tests/assets/chat/chat_template.jinja"]
FAMILIES.update({
    "padded mixtral fp32": ("mixtral_debug", PADDED, 1e-5, 1e-2),
    "padded mixtral bf16": ("mixtral_debug", [*PADDED, *BF16], 4e-3, 1e-1),
    "padded qwen3 fused fp32": ("qwen3_debug", [*PADDED, *FUSED], 1e-5, 1e-3),
    "adapters fp32": ("finetune_debug", [], 1e-5, 1e-3),
    "Muon fp32": ("debug_model", ["--optimizer.name", "Muon"], 1e-5, 1e-3),
})
STEPS = {"first_steps": 10, "families": 5}
SHORT = {"first_steps": ["--training.seq_len", 512], "families": ["--training.seq_len", 256]}
SAVES = ["--checkpoint.enable", "--checkpoint.no_last_save_model_only"]
JOBS = {"first_steps": FIRST_STEPS, "families": FAMILIES}


def device(c):
    listed = c.run("titan", "list", timeout=20)
    check("titan list", listed.code == 0, listed.code, 0, None if listed.code == 0 else listed.why())
    if not c.is_small:
        info = c.run("/bin/sh", "-c", "nvidia-smi -q -d CLOCK,POWER,MEMORY,ECC | head -120", timeout=15)
        (c.out / "nvidia_smi.txt").write_text(info.stdout)
    results = c.work / "gpu_tests.json"
    c.work.mkdir(parents=True, exist_ok=True)
    tests = c.run("titan_gpu_tests", f"--gtest_output=json:{results}", TITAN_PLUGIN_DIR=str(c.plugins))
    suites = json.loads(results.read_text())["testsuites"] if results.exists() else []
    if not suites:
        check("titan_gpu_tests", False, tests.code, 0, tests.why() + tests.stdout[-1500:])
    for suite in suites:
        for case in suite["testsuite"]:
            failures = " / ".join(failure["failure"] for failure in case.get("failures", []))
            if case.get("result") == "SKIPPED":
                row("skipped tests", test=f"{suite['name']}.{case['name']}")
            else:
                check(f"test {suite['name']}.{case['name']}", not failures, None, None, failures or None)


def expected_losses(c, stage, jobs):
    """Losses on the CPU, from the bundle, or computed here if there is none."""
    file = c.root / "tests/gpu/expected.json"
    if file.exists():
        return json.loads(file.read_text())[stage]
    return losses_on_the_cpu(c, stage, jobs)


def losses_on_the_cpu(c, stage, jobs):
    runs = c.side_by_side({name: lambda name=name, job=job: c.train(
        f"cpu {name}", *job[1], *SHORT[stage], config=job[0], steps=STEPS[stage], device="cpu")
                           for name, job in jobs.items()})
    for name, run in runs.items():
        ran(f"cpu {name}", run)
    return {name: run.losses() for name, run in runs.items()}


def compare_with_cpu(c, stage):
    jobs = JOBS[stage]
    if c.is_small:
        jobs = dict(list(jobs.items())[:1])
    expected = expected_losses(c, stage, jobs)
    runs = c.side_by_side({name: lambda name=name, job=job: c.train(name, *job[1], *SHORT[stage], config=job[0],
                                                                    steps=STEPS[stage])
                           for name, job in jobs.items()}, workers=4)
    for name, run in runs.items():
        if not ran(name, run):
            continue
        losses, (_, _, first, whole) = run.losses(), jobs[name]
        within(f"{name}: first loss differs from the CPU's (relative)", largest_difference(losses[:1], expected[name][:1]), first)
        within(f"{name}: losses of all steps differ from the CPU's (relative)", largest_difference(losses, expected[name]), whole,
               f"{losses} and {expected[name]}")
        if "adapters" not in name:  # losses of an untrained model
            check(f"{name}: the loss falls", losses[-1] < losses[0], losses[-1], losses[0])


def first_steps(c):
    compare_with_cpu(c, "first_steps")


def families(c):
    compare_with_cpu(c, "families")


def operations(c):
    run = c.relay("device_probe", "--plugins", c.plugins, "ops", c.device, 2 if c.is_small else 20,
                  *(["--small"] if c.is_small else []), prefix="operations")
    check("device_probe ops ends by itself", run.code in (0, 1), run.code, 1, run.why())


def float8(c):
    run = c.relay("device_probe", "--plugins", c.plugins, "float8", c.device, prefix="float8")
    check("device_probe float8 ends by itself", run.code in (0, 1), run.code, 1, run.why())
    if c.is_small:
        return
    names = {"tensorwise": ["--quantize.linear.float8.recipe_name", "tensorwise"],
             "rowwise": ["--quantize.linear.float8.recipe_name", "rowwise"],
             "rowwise_with_gw_hp": ["--quantize.linear.float8.recipe_name", "rowwise_with_gw_hp"]}
    jobs = {}
    for name, flags in names.items():
        for emulate in (True, False):
            more = ["--quantize.linear.float8.emulate"] if emulate else []
            jobs[f"{name} {'emulated' if emulate else 'on tensor cores'}"] = lambda n=name, f=flags, m=more: c.train(
                f"float8 {n} {len(m)}", *BF16, "--model.converters", "quantize.linear.float8", *f, *m)
    runs = c.side_by_side(jobs)
    for name in names:
        real, emulated = runs[f"{name} on tensor cores"], runs[f"{name} emulated"]
        if ran(f"float8 {name}", real) & ran(f"float8 {name} emulated", emulated):
            within(f"float8 {name}: losses differ from the emulation's (relative)",
                   largest_difference(real.losses(), emulated.losses()), 2e-2)


def curve(run):
    return list(zip(run.losses(), run.values("grad_norm")))


def graphs(c):
    kinds = {"fp32": [], "bf16": BF16, "bf16 two microbatches": [*BF16, "--training.global_batch_size", "4"],
             "bf16 full recomputation": [*BF16, "--activation_checkpoint.mode", "full"]}
    if c.is_small:
        kinds = {"fp32": []}
    jobs = {}
    for kind, flags in kinds.items():
        for graph in (True, False):
            more = ["--compile.enable"] + ([] if graph else ["--compile.no_graphs"])
            jobs[kind, graph] = lambda k=kind, f=flags, m=more, g=graph: c.train(
                f"graphs {k} {g}", *f, *m, *EXACT, *SAVES, *(["--training.seq_len", 128] if c.is_small else []),
                "--checkpoint.interval", 12, steps=12)
    runs = c.side_by_side(jobs)
    for kind in kinds:
        on, off = runs[kind, True], runs[kind, False]
        if not ran(f"graphs on, {kind}", on) & ran(f"graphs off, {kind}", off):
            continue
        if not c.is_small:
            check(f"{kind}: steps are replayed as a graph", "are replayed as a graph of the device" in on.stderr
                  and "are not replayed" not in on.stderr, None, None,
                  " / ".join(line for line in on.stderr.splitlines() if "graph" in line))
        check(f"{kind}: losses and norms are bitwise equal", curve(on) == curve(off), None, None,
              f"first difference at step {next((i + 1 for i, (a, b) in enumerate(zip(curve(on), curve(off))) if a != b), None)}")
        same_tensors(f"{kind}: weights and optimizer states after 12 steps are bitwise equal", on.folder / "checkpoint/step-12",
                     off.folder / "checkpoint/step-12")


def recompute(c):
    modes = {"none": ["--activation_checkpoint.mode", "none"], "full": ["--activation_checkpoint.mode", "full"],
             "selective op": ["--activation_checkpoint.mode", "selective", "--activation_checkpoint.selective_ac_option", "op"],
             "selective 2": ["--activation_checkpoint.mode", "selective", "--activation_checkpoint.selective_ac_option", "2"],
             "offload": ["--activation_checkpoint.mode", "offload"]}
    if c.is_small:
        modes = {name: modes[name] for name in ("none", "full")}
    shape = ["--training.seq_len", 256] if c.is_small else ["--training.seq_len", 2048, "--training.local_batch_size", 4]
    counted = ["--device.count_tensors"] if c.is_small else []
    kinds = {"fp32": [], "bf16": BF16}
    jobs = {(mode, kind): lambda m=mode, k=kind: c.train(f"recompute {m} {k}", *EXACT, *modes[m], *kinds[k], *shape, *counted,
                                                           steps=6)
            for mode in modes for kind in kinds}
    estimates = {("estimate", mode, kind): lambda m=mode, k=kind: c.run(
        "titan", "estimate", "--job.config_file", "train_configs/debug_model.toml", "--device.name", c.device, *modes[m], *kinds[k],
        *shape, "--ranks", 1, "--json") for mode in modes for kind in kinds}
    if not c.is_small:
        jobs["cpu offload", "bf16"] = lambda: c.train("recompute cpu offload", *BF16, "--training.enable_cpu_offload", *shape, steps=6)
    done = c.side_by_side({**jobs, **estimates})
    for kind in kinds:
        plain = done["none", kind]
        for mode in modes:
            run, estimate = done[mode, kind], done["estimate", mode, kind]
            if not ran(f"{mode}, {kind}", run):
                continue
            check(f"{mode}, {kind}: losses and norms are bitwise those of none", curve(run) == curve(plain), None, None,
                  f"{largest_difference(run.losses(), plain.losses())}")
            if not ran(f"estimate of {mode}, {kind}", estimate):
                continue
            predicted = max(rank["peak_bytes"] for rank in json.loads(estimate.stdout)["ranks"])
            measured = max(run.values("memory/max_active(GiB)")) * 2**30
            row("peak memory", mode=mode, dtype=kind, estimated_bytes=predicted, measured_bytes=round(measured),
                error_percent=round(100 * (predicted / measured - 1), 3))
            # how much offloaded memory is still in flight depends on the speed of the copies
            within(f"{mode}, {kind}: estimated peak memory differs from the measured one (relative)",
                   abs(predicted / measured - 1), 0.1 if mode == "offload" else 0.01)
    if ("cpu offload", "bf16") in done and ran("training.enable_cpu_offload", done["cpu offload", "bf16"]):
        within("training.enable_cpu_offload: losses differ from those without (relative)",
               largest_difference(done["cpu offload", "bf16"].losses(), done["none", "bf16"].losses()), 1e-2)


def held(run):
    events = [json.loads(line) for line in (run.folder / "history.jsonl").read_text().splitlines()]
    return [event["held"] for event in events if event.get("event") == "checkpoint"]


def checkpoints(c):
    more = ["--training.seq_len", 128] if c.is_small else []
    save = [*EXACT, *SAVES, "--checkpoint.interval", 4, *more]
    modes = ("disabled", "async", "async_with_pinned_mem")[::2 if c.is_small else 1]
    runs = c.side_by_side({mode: lambda m=mode: c.train(f"saved {m}", *save, "--checkpoint.async_mode", m, steps=8) for mode in modes})
    whole = runs["disabled"]
    if not all([ran(f"saves, {mode}", run) for mode, run in runs.items()]):
        return
    for mode in modes[1:]:
        for step in (4, 8):
            same_tensors(f"{mode}: step {step} is bitwise the synchronous save", runs[mode].folder / f"checkpoint/step-{step}",
                         whole.folder / f"checkpoint/step-{step}")
    for mode in modes:
        figure(f"training held per save of 6 million parameters, {mode} (s)", held(runs[mode]))
    half = c.train("half", *save, "--checkpoint.async_mode", "async_with_pinned_mem", steps=4)
    rest = c.train("half", *save, "--checkpoint.async_mode", "async_with_pinned_mem", steps=8, keep=True)
    # a run of 4 steps has another schedule, so the comparison resumes from step 4 of the whole run
    if ran("the first half", half) & ran("the resumed half", rest):
        check("a run resumes from its own save", "resumed after step 4" in rest.stderr, None, None, rest.why())
    again = c.fresh("again")
    (again / "checkpoint").mkdir()
    subprocess.run(["cp", "-r", str(whole.folder / "checkpoint/step-4"), str(again / "checkpoint")], check=True)
    resumed = c.train("again", *save, steps=8, keep=True)
    if ran("resume from step 4", resumed):
        check("losses after a resume are bitwise those of the whole run", curve(resumed) == curve(whole)[4:], None, None,
              f"{curve(resumed)} and {curve(whole)[4:]}")
        same_tensors("step 8 after a resume is bitwise that of the whole run", resumed.folder / "checkpoint/step-8",
                     whole.folder / "checkpoint/step-8")
    words = ["generate", "--checkpoint", whole.folder / "checkpoint", "--prompt", "The quick brown", "--max-new-tokens", 24, "--json"]
    texts = c.side_by_side({name: lambda d=name: c.run("titan", *words, "--device.name", d) for name in {c.device, "cpu"}})
    if all([ran(f"generation on {name}", run) for name, run in texts.items()]):
        check("generated tokens are the CPU's", texts[c.device].stdout == texts["cpu"].stdout, None, None,
              f"{texts[c.device].stdout} and {texts['cpu'].stdout}")
    other = c.fresh("on the cpu")
    (other / "checkpoint").mkdir()
    subprocess.run(["cp", "-r", str(whole.folder / "checkpoint/step-4"), str(other / "checkpoint")], check=True)
    crossed = c.train("on the cpu", *save, steps=5, device="cpu", keep=True)
    if ran("a checkpoint of this device resumes on the CPU", crossed):
        within("its next loss differs (relative)", largest_difference(crossed.losses()[:1], whole.losses()[4:5]), 1e-4)


def communication(c):
    ranks = c.gpus()
    jobs = {"fsdp": ["--parallelism.data_parallel_shard_degree", -1, *BF16], "ddp": ["--parallelism.data_parallel_replicate_degree", ranks]}
    for name, flags in jobs.items():
        run = c.train(f"launched {name}", *flags, steps=3, launch=("launch", "--nproc", ranks, "--log-dir", c.fresh(f"logs {name}"),
                                                                     "--"))
        ran(f"titan launch --nproc {ranks}, {name}", run)
    probe = c.run("titan", "launch", "--nproc", ranks, "--log-dir", c.fresh("logs of collectives"), "--program",
                  c.programs / "device_probe", "--", "--plugins", c.plugins, "collectives", c.device, 1 if c.is_small else 256)
    for line in probe.stdout.splitlines():
        if "sent_bytes_per_second" in line:
            for item in json.loads(line[line.index("{"):])["rows"]:
                row("collectives", ranks=ranks, **item)
    ran(f"collectives of {ranks} ranks", probe)
    if ranks > 1:
        stopped(c)
        return
    two = c.train("two ranks on one card", "--training.seq_len", 128, steps=2, timeout=25,
                  launch=("launch", "--nproc", 2, "--log-dir", c.fresh("logs of two"), "--"))
    if c.is_small:
        check("two ranks train", two.code == 0, two.code, 0, two.why())
    else:
        text = two.stderr + two.stdout
        check("two ranks on one card end with an error that says why", two.code not in (0, None)
              and re.search(r"ranks \d+ and \d+ of group .* share one GPU", text) is not None, two.code, None, two.why())
        records = sorted(two.folder.glob("comm_traces/*"))
        figure("flight records of the two refused ranks", len(records))
        if records:
            flight = c.run("titan", "flight", two.folder / "comm_traces", timeout=10)
            check("titan flight reads them", flight.code in (0, 1), flight.code, 1, flight.why())
            row("flight", says=flight.stdout[-1500:])
    stopped(c)


def stopped(c):
    """SIGTERM ends a run on this device after its step, with the exit code of docs/internals/architecture.md."""
    folder = c.fresh("stopped")
    words = [str(c.programs / "titan"), "train", "--job.config_file", "train_configs/debug_model.toml", "--job.dump_folder", str(folder),
             "--device.name", c.device, "--training.steps", "4000", "--metrics.loggers", "jsonl", "--metrics.no_enable_tensorboard",
             "--metrics.log_freq", "1", *(["--training.seq_len", "64"] if c.is_small else [])]
    with subprocess.Popen(words, cwd=c.root, env=c.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        limit, file = time.monotonic() + min(20, c.left() - 3), folder / "metrics.jsonl"
        while time.monotonic() < limit and not (file.exists() and file.read_text().count("\n") > 2):
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        try:
            _, errors = process.communicate(timeout=max(1, min(10, c.left() - 2)))
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
    check("SIGTERM ends the run after its step", process.returncode == 143, process.returncode, 143, errors[-800:])


def ladder(c):
    """tests/parity/ladder.py with the layouts of as many ranks as there are GPUs."""
    ranks = 2 if c.is_small else c.gpus()
    if ranks < 2:
        row("ladder", says="left out: it needs two GPUs")
        check("the ladder is left out with one GPU", True)
        return
    words = ["--device", c.device, "--dtypes", "float32", "--most-ranks", ranks, "--jobs", 1,
             *(["--only", "FSDP 2, accumulation 2, summed"] if c.is_small else [])]
    run = c.run(sys.executable, c.root / "tests/parity/ladder.py", *words, TITAN_SOURCE_DIR=str(c.root),
                TITAN_PROGRAM=str(c.programs / "titan"))
    ran("tests/parity/ladder.py", run)
    row("ladder", says=" / ".join(run.stdout.strip().splitlines()[-3:]))


def trace(c):
    more = ["--training.seq_len", 64] if c.is_small else []
    run = c.train("traced", "--profiling.enable_profiling", "--profiling.profile_freq", 6, "--profiling.enable_memory_snapshot", *more,
                  *BF16, steps=7)
    if not ran("a profiled run", run):
        return
    files = sorted(run.folder.glob("profile_traces/**/*trace.json.gz"))
    if not check("a trace was written", files != [], len(files), None, run.why()):
        return
    events = json.loads(gzip.decompress(files[0].read_bytes()))["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    figure("events in the trace", len(events))
    figure("kernels in the trace of one step", len(kernels))
    if not c.is_small:
        check("the trace has kernels of the GPU", len(kernels) > 100, len(kernels), 100)
        check("kernels have lanes", len({(event["pid"], event["tid"]) for event in kernels}) >= 1)
        own = sorted({event["name"][:120] for event in kernels if "titan" in event["name"]})
        check("kernels of the cuda plugin are among them", own != [], len(own), None, ", ".join(own[:5]))
        (c.out / "kernels_debug_bf16.txt").write_text("\n".join(sorted({event["name"] for event in kernels})))
    check("memory snapshots were written", list(run.folder.glob("memory_snapshot/**/*.pickle")) != [])
    merged = c.run("titan", "trace", run.folder / "profile_traces", timeout=20)
    check("titan trace merges it", merged.code == 0, merged.code, 0, merged.why())


def expected(c):
    """Prints expected.json."""
    found = {stage: losses_on_the_cpu(c, stage, jobs) for stage, jobs in JOBS.items()}
    (c.out / "expected.json").write_text(json.dumps(found, indent=1))


def diagnosis(c):
    """Runs failed operations again under CUDA's tools with a small shape."""
    small = ["--training.seq_len", 64, "--training.local_batch_size", 1]
    blocking = c.train("blocking", *small, *BF16, steps=2, timeout=25, CUDA_LAUNCH_BLOCKING="1", TORCH_SHOW_CPP_STACKTRACES="1")
    row("diagnosis", tool="CUDA_LAUNCH_BLOCKING=1", code=blocking.code, says=blocking.why()[-1500:])
    for tool in ("memcheck", "racecheck"):
        if c.left() > 8 and not c.is_small:
            run, summary = sanitizing.run_tool(c, tool, "ops", timeout=25)
            row("diagnosis", tool=f"compute-sanitizer {tool}", code=run.code, says=" / ".join(summary))
    if not c.is_small and blocking.code not in (0, None) and c.left() > 15:
        trace_of = c.run("/usr/bin/env", "cuda-gdb", "-batch", "-ex", "run", "-ex", "bt", "--args", *blocking.words, timeout=25)
        (c.out / "backtrace.txt").write_text((trace_of.stdout + trace_of.stderr)[-100000:])
        row("diagnosis", tool="cuda-gdb", code=trace_of.code, says=" / ".join(trace_of.stdout.splitlines()[-8:]))
    if not c.is_small and c.left() > 15:
        # the two own kernels that are furthest from the memory's bandwidth
        for name in ("rms_norm", "rope"):
            counters = c.run("/usr/bin/env", "ncu", "--clock-control", "none", "--set", "basic", "--kernel-name-base", "demangled",
                             "-k", "regex:titan::cuda", "-c", "4", c.programs / "device_probe", "--plugins", c.plugins, "speed",
                             c.device, "--only", name, timeout=20)
            (c.out / f"ncu_{name}.txt").write_text((counters.stdout + counters.stderr)[-200000:])
            row("diagnosis", tool=f"ncu {name}", code=counters.code, says=" / ".join(counters.stdout.splitlines()[-4:]))
    check("the failed stages were looked at", True, None, None, " ".join(c.failed))


STAGES = {function.__name__: function for function in (device, first_steps, operations, float8, graphs, recompute, checkpoints,
                                                       communication, ladder, trace, families, expected, diagnosis)}
STAGES.update(measuring.STAGES, sanitizer=sanitizing.sanitizer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--failed", nargs="*", default=[])
    arguments = parser.parse_args()
    arguments.programs = arguments.programs or arguments.root / "build/release/bin"
    arguments.out.mkdir(parents=True, exist_ok=True)
    context = Context(arguments)
    STAGES[arguments.stage](context)
    return 0


if __name__ == "__main__":
    sys.exit(main())
