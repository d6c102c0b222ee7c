"""Runs everything that Titan wants to know of a machine with GPUs, and leaves one file to send back.

    tests/gpu/run_all.sh                   # in the root of a built tree (build/release); under 30 minutes, no network
    tests/gpu/run_all.sh --dry-run         # what it would run
    tests/gpu/run_all.sh --device cpu      # the same stages in small, without a GPU: a test of this script

Stages: the GPU's tests, every operation's bits over 20 runs, collectives of all GPUs, the parity ladder, and training of 1B and
8B in bf16 and float8 at 4,096 tokens by titan bench. Each stage's result is kept in --out under a key of the commit, the
machine and what it runs; a stage that is there, and did not fail, is not run again, so that whoever is interrupted starts the
same command once more. What does not fit into the GPU's memory by `titan estimate` is said with the estimate, not tried. Standard
library only.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOAT8 = ["--model.converters", "quantize.linear.float8"]
# Tried in this order until the estimate fits.
WAYS = (
    ("all activations kept", ["--activation_checkpoint.mode", "none"]),
    ("selective recomputation", ["--activation_checkpoint.mode", "selective"]),
    ("full recomputation", ["--activation_checkpoint.mode", "full"]),
    ("full recomputation, weights in bf16", ["--activation_checkpoint.mode", "full", "--training.dtype", "bfloat16"]),
)
ROOM = 0.92  # of the GPU's memory that an estimate may take: it knows nothing of CUDA's context and of fragments


def said(*command, default=""):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60).stdout.strip() or default
    except OSError:
        return default


def machine(device):
    """What a result depends on beside the commit."""
    facts = {"device": device, "commit": said("git", "rev-parse", "HEAD", default="unknown"),
             "changes": hashlib.sha256(said("git", "diff", "HEAD").encode()).hexdigest()[:12], "cpus": os.cpu_count()}
    if device == "cuda":
        facts["gpus"] = said("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader").splitlines()
        if not facts["gpus"]:
            sys.exit("nvidia-smi shows no GPU; --device cpu runs the stages in small on the CPU")
    return facts


class Stage:
    """A command that may take `seconds`; `judge` makes the result's members of its exit code and output; `choose_way`, where it is
    given, says first how the job fits into memory: (name, more words)."""

    def __init__(self, name, seconds, words, judge, choose_way=None):
        self.name, self.seconds, self.words, self.judge = name, seconds, [str(word) for word in words], judge
        self.choose_way = choose_way

    def key(self, facts):
        return hashlib.sha256(json.dumps([facts, self.name, self.words]).encode()).hexdigest()[:16]


class Refused(Exception):
    """The stage cannot run here; why."""


def run_words(stage, log):
    """Runs the stage's program, what it says going to `log` too; (exit code, output)."""
    environment = dict(os.environ, TITAN_SOURCE_DIR=str(ROOT), TITAN_PROGRAM=str(PLACES.titan), TITAN_WORK=str(PLACES.out / "work"))
    with open(log, "w") as file:
        try:
            run = subprocess.run(stage.words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=file, text=True, timeout=stage.seconds)
        except subprocess.TimeoutExpired as end:
            output = end.stdout or b""
            file.write(output.decode(errors="replace") if isinstance(output, bytes) else output)
            raise Refused(f"it took longer than {stage.seconds} s") from None
        file.write(run.stdout)
    return run.returncode, run.stdout


class Places:
    """Where things are; filled by main."""
    titan = bin = build = out = None


PLACES = Places()


def of_exit_code(code, output):
    return {"status": "ok" if code == 0 else "failed", "says": output.strip().splitlines()[-3:]}


def of_json(code, output):
    """Of a program that prints its findings as one JSON value, whatever it ends with."""
    try:
        return {"status": "ok" if code == 0 else "failed", "found": json.loads(output)}
    except ValueError:
        return {"status": "failed", "says": output.strip().splitlines()[-3:]}


def of_ctest(code, output):
    """Skipped tests are told as such: a machine without two GPUs skips those that need two."""
    skipped = [line.strip() for line in output.splitlines() if "Skipped" in line and "***" in line]
    return {**of_exit_code(code, output), "skipped": skipped}


class Training:
    """The words for one training stage, and which way of fitting it into memory is taken."""

    def __init__(self, arguments, facts, ranks):
        self.arguments, self.facts, self.ranks = arguments, facts, ranks

    def job(self, flavor, dtype):
        words = ["--job.config_file", "train_configs/debug_model.toml", "--device.name", self.arguments.device]
        if self.arguments.device == "cuda":
            words += ["--model.flavor", flavor, "--training.seq_len", "4096", "--training.local_batch_size", "1"]
        else:
            words += ["--training.seq_len", "64"]
        words += ["--training.mixed_precision_param", "bfloat16", "--parallelism.data_parallel_shard_degree", str(self.ranks)]
        if dtype == "float8":
            words += FLOAT8 + ([] if self.arguments.device == "cuda" else ["--quantize.linear.float8.emulate"])
        return words

    def memory(self):
        """Bytes of one GPU."""
        return float(self.facts["gpus"][0].split(",")[1].split()[0]) * 2**20

    def fitting(self, job):
        """The first of WAYS whose estimate fits, as (name, flags); every estimate when none does."""
        if self.arguments.device == "cpu":
            return WAYS[0]
        estimates = []
        for name, flags in WAYS:
            run = subprocess.run([PLACES.titan, "estimate", *job, *flags, "--ranks", str(self.ranks), "--json"], cwd=ROOT,
                                 capture_output=True, text=True, timeout=300)
            if run.returncode != 0:
                raise Refused(f"titan estimate: {run.stderr.strip().splitlines()[-1:]}")
            peak = max(rank["peak_bytes"] for rank in json.loads(run.stdout)["ranks"])
            if peak <= ROOM * self.memory():
                return name, flags
            estimates.append(f"{name}: {peak / 2**30:.1f} GiB")
        raise Refused(f"it does not fit into {self.memory() / 2**30:.1f} GiB by titan estimate ({'; '.join(estimates)})")

    def stage(self, flavor, dtype):
        small = self.arguments.device == "cpu"
        job = self.job(flavor, dtype)
        name = f"train_{flavor}_{dtype}"
        # on a GPU the clock is read every 5 steps: whoever reads it waits for the GPU
        steps = [2, 3, 1] if small else [5, 20, 5]
        words = [PLACES.titan, "bench", *job, *(word for pair in zip(("--warmup", "--steps", "--interval"), steps) for word in pair),
                 "--json", "-"]
        if self.ranks > 1:
            words += ["--nproc", self.ranks]
        return Stage(name, 120 if small else 240, words, of_json, lambda: self.fitting(job))


def stages(arguments, facts):
    small = arguments.device == "cpu"
    ranks = 2 if small else len(facts["gpus"])
    plugins = PLACES.build / "lib/titan/plugins"
    probe = [PLACES.bin / "device_probe"]
    rounds = 3 if small else 20
    found = [
        Stage("tests", 300, ["ctest", "--test-dir", PLACES.build, "-L", "gpu", "--output-on-failure"], of_ctest),
        Stage("bits", 180, [*probe, "--plugins", plugins, "ops", arguments.device, rounds], of_json),
        Stage("collectives", 180, [PLACES.titan, "launch", "--nproc", ranks, "--log-dir", PLACES.out / "collective_logs", "--program",
                                   probe[0], "--", "--plugins", plugins, "collectives", arguments.device, 1 if small else 256],
              of_rank_zero),
        Stage("ladder", 420, [sys.executable, ROOT / "tests/parity/ladder.py", "--device", arguments.device, "--dtypes", "float32",
                              "--most-ranks", ranks, "--jobs", 1, "--only", "FSDP 2, accumulation 2, summed" if small else ""],
              of_exit_code),
    ]
    training = Training(arguments, facts, ranks)
    sizes = ("debugmodel",) if small else ("1B", "8B")
    return found + [training.stage(size, dtype) for size in sizes for dtype in ("bfloat16", "float8")]


def of_rank_zero(code, output):
    """titan launch shows rank 0 among lines of its own."""
    lines = [line[line.index("{"):] for line in output.splitlines() if "{" in line and "sent_bytes_per_second" in line]
    return of_json(code, lines[-1] if lines else output)


def result_of(stage, facts):
    """From its file, or by running it."""
    file = PLACES.out / f"{stage.name}.json"
    key = stage.key(facts)
    if file.exists():
        known = json.loads(file.read_text())
        if known["key"] == key and known["status"] in ("ok", "skipped"):
            return {**known, "known": True}
    result, begin = {"stage": stage.name, "key": key, "command": shlex.join(stage.words)}, time.monotonic()
    try:
        if stage.choose_way:
            result["memory"], more = stage.choose_way()
            stage.words += more
        result.update(stage.judge(*run_words(stage, PLACES.out / f"{stage.name}.log")))
    except Refused as why:
        # what does not fit is an answer, what took too long is not
        result.update(status="skipped" if "does not fit" in str(why) else "failed", says=[str(why)])
    result["seconds"] = round(time.monotonic() - begin, 1)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(result, indent=1))
    temporary.rename(file)
    return result


def training_row(result):
    figures = result.get("found", {}).get("figures")
    if not figures:
        return f"| {result['stage']} | {result['status']}: {' '.join(map(str, result.get('says', [])))} | | | | |"
    mfu = figures["mfu"]

    def percent(share):
        return "not known" if share is None else f"{100 * share:.1f} %"
    return (f"| {result['stage']} | {figures['ranks']}, {result.get('memory', '')} | {figures['tokens_per_second_per_rank']:,.0f} | "
            f"{percent(mfu['full_attention'])} / {percent(mfu['causal_half'])} | {percent(figures['share_of_gemm']['full_attention'])} | "
            f"{figures['peak_bytes'] / 2**30:.1f} |")


def report(results, facts):
    text = ["# GPU run", "", *(f"- {name}: {value}" for name, value in facts.items()), "", "| stage | status | seconds | says |",
            "|---|---|---|---|"]
    for result in results:
        says = " / ".join(map(str, result.get("says", []) + result.get("skipped", []))).replace("|", "/")
        text.append(f"| {result['stage']} | {result['status']} | {result['seconds']} | {says} |")
    text += ["", "| training | GPUs, memory | tokens/s per GPU | MFU, full attention / causal half | of the GEMM | peak GiB |",
             "|---|---|---|---|---|---|", *(training_row(result) for result in results if result["stage"].startswith("train_"))]
    for result in results:
        rows = result.get("found", {}).get("rows", [])
        if rows:
            names = list(rows[0])
            text += ["", f"## {result['stage']}", "", "| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
            text += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--out", type=pathlib.Path, help="folder of the results (default: gpu_results in the build)")
    parser.add_argument("--only", nargs="*", help="these stages alone")
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args()
    PLACES.build = arguments.build.resolve()
    PLACES.bin = PLACES.build / "bin"
    PLACES.titan = PLACES.bin / "titan"
    PLACES.out = (arguments.out or PLACES.build / "gpu_results").resolve()
    missing = [name for name in ("titan", "titan-train", "titan-runs", "titan-probe", "device_probe") if not (PLACES.bin / name).exists()]
    if missing:
        sys.exit(f"{PLACES.bin} has no {', '.join(missing)}; build with: cmake --build {PLACES.build}")
    facts = machine(arguments.device)
    chosen = stages(arguments, facts)
    unknown = set(arguments.only or []) - {stage.name for stage in chosen}
    if unknown:
        sys.exit(f"there is no stage {', '.join(sorted(unknown))}; there are {', '.join(stage.name for stage in chosen)}")
    chosen = [stage for stage in chosen if not arguments.only or stage.name in arguments.only]
    if arguments.dry_run:
        for stage in chosen:
            print(f"{stage.name} (at most {stage.seconds} s): {shlex.join(stage.words)}")
        return 0
    PLACES.out.mkdir(parents=True, exist_ok=True)
    results = []
    for stage in chosen:
        results.append(result_of(stage, facts))
        print(f"{stage.name}: {results[-1]['status']}, {results[-1]['seconds']} s{', known' if 'known' in results[-1] else ''}", flush=True)
    (PLACES.out / "report.md").write_text(report(results, facts))
    (PLACES.out / "report.json").write_text(json.dumps({"schema": 1, "machine": facts, "stages": results}, indent=1))
    with tarfile.open(PLACES.out / "report.tar.gz", "w:gz") as tar:
        for file in sorted(PLACES.out.glob("*.*")):
            if file.suffix in (".md", ".json", ".log"):
                tar.add(file, arcname=f"gpu_report/{file.name}")
    print(f"send back: {PLACES.out / 'report.tar.gz'}")
    return 1 if any(result["status"] == "failed" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
