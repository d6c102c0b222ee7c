"""Checks and measures Titan on a machine with a GPU, in minutes, from a bundle that was built elsewhere.

    tools/gpu_bundle.sh DIR                                        # on a machine with nvcc; needs no GPU
    DIR/tests/gpu/run_all.sh --bundle DIR --minutes 9 --out OUT    # on the machine with the GPU; needs no network, no compiler
    tests/gpu/run_all.sh --device cpu                              # every stage with small sizes on a CPU, from build/release
    ... --only device graphs                                       # only these stages
    ... --again-failed OUT/report.json                             # the stages that failed in an earlier run
    ... --list                                                     # the stages and their limits

Every stage is a separate process with a time limit. When a stage fails, crashes or hangs, the other stages still run.
OUT/report.json and OUT/report.md are complete after every stage, so that a run that is interrupted at any moment leaves
a report, and the report names the stage that was running. tools/gpu_report.py makes docs/results/gpu.md from
report.json. Standard library only.
"""

import argparse
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

from stages import DIAGNOSIS, STAGES

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GRACE = 2  # seconds between SIGTERM and SIGKILL of a stage at its limit
CHECKS_KEPT = 4000


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, help="folder made by tools/gpu_bundle.sh (default: the tree's build/release)")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("gpu_results"))
    parser.add_argument("--only", nargs="+", metavar="STAGE")
    parser.add_argument("--again-failed", type=pathlib.Path, metavar="REPORT", help="only the stages that failed in an earlier report")
    parser.add_argument("--patience", type=float, default=1, metavar="F", help="multiplies every stage's limit, for slow machines")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="limit in seconds for every stage")
    parser.add_argument("--no-diagnosis", action="store_true", help="do not rerun what failed under the CUDA tools")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--plant", nargs="+", default=[], metavar="STAGE=FAULT",
                        help="for tests of this program: replaces a stage with hang, crash, nan or garbage")
    return parser.parse_args()


def not_finite(value):
    """Whether a JSON value contains a NaN or an infinity."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(not_finite, value.values()))
    return isinstance(value, list) and any(map(not_finite, value))


class Findings:
    """The output of a stage, line by line: checks, figures and rows of tables as JSON objects. Thread-safe enough for
    one reader."""

    def __init__(self):
        self.checks, self.figures, self.tables, self.unread = [], {}, {}, 0

    def take(self, line):
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            self.unread += bool(line.strip())
        elif "check" in found and isinstance(found.get("ok"), bool):
            if not_finite(found) and found["ok"]:
                found.update(ok=False, says=f"a value is not finite; {found.get('says', '')}")
            if len(self.checks) < CHECKS_KEPT:
                self.checks.append(found)
        elif "figure" in found and "value" in found:
            if not_finite(found["value"]):
                self.checks.append({"check": found["figure"], "ok": False, "says": "the figure is not finite"})
            else:
                self.figures[str(found["figure"])] = found["value"]
        elif "table" in found and isinstance(found.get("row"), dict):
            self.tables.setdefault(str(found["table"]), []).append(found["row"])
        else:
            self.unread += 1

    def failed(self):
        return [check for check in self.checks if not check["ok"]]


def end_group(process):
    """Ends a stage and everything that it started."""
    for number, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
    try:
        os.killpg(process.pid, signal.SIGKILL)  # children that outlived it
    except ProcessLookupError:
        pass


def run_stage(stage, words, limit, log, environment):
    """Runs one stage; its record for the report."""
    findings, begin = Findings(), time.monotonic()
    with open(log, "wb") as errors:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
                                   env=environment)

        def read():
            with open(log.with_suffix(".out"), "wb") as copy:
                for line in process.stdout:
                    copy.write(line)
                    copy.flush()
                    findings.take(line.decode(errors="replace"))
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        says, hung = [], False
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            hung, code = True, None
            says.append(f"it did not finish within {limit:.0f} s")
        end_group(process)
        reader.join(5)
    failed = findings.failed()
    if not hung and code is not None and code < 0:
        says.append(f"it was ended by signal {-code} ({signal.Signals(-code).name})")
    elif not hung and code not in (0, 1):
        says.append(f"exit code {code}")
    if not findings.checks and not findings.figures and not findings.tables:
        says.append(f"it printed nothing that this program reads ({findings.unread} other lines)")
    elif not hung and code == 1 and not failed:
        says.append("exit code 1 without a failed check")
    status = "failed" if failed or says else "passed"
    if says:
        tail = log.read_bytes()[-3000:].decode(errors="replace").strip().splitlines()
        says += [f"stderr: {line}" for line in tail[-8:]]
    return {"stage": stage.name, "what": stage.what, "status": status, "seconds": round(time.monotonic() - begin, 1), "limit": limit,
            "says": says, "checks": findings.checks, "figures": findings.figures, "tables": findings.tables,
            "unread_lines": findings.unread}


class Report:
    """report.json and report.md, complete at any moment."""

    def __init__(self, out, facts, chosen):
        self.out, self.facts, self.begin = out, facts, time.monotonic()
        self.records, self.waiting, self.running = [], [stage.name for stage in chosen], None

    def starts(self, stage):
        self.running = stage.name
        self.waiting = [name for name in self.waiting if name != stage.name]
        self.write()

    def ends(self, record):
        self.running = None
        self.records.append(record)
        self.write()

    def write(self):
        whole = {"schema": 2, "machine": self.facts, "seconds": round(time.monotonic() - self.begin, 1), "running": self.running,
                 "not_started": self.waiting, "stages": self.records}
        self.replace("report.md", self.text())
        self.replace("report.json", json.dumps(whole, indent=1))  # last, so that a reader that waits for it finds the other too

    def replace(self, name, text):
        temporary = self.out / f".{name}.tmp"
        with open(temporary, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self.out / name)

    def text(self):
        lines = ["# GPU run", "", *(f"- {name}: {value}" for name, value in self.facts.items()), "",
                 "| stage | status | seconds | checks | failed |", "|---|---|---:|---:|---|"]
        for record in self.records:
            failed = [check["check"] for check in record["checks"] if not check["ok"]]
            says = "; ".join(failed[:6] + record["says"][:1]).replace("|", "/")
            lines.append(f"| {record['stage']} | {record['status']} | {record['seconds']} | {len(record['checks'])} | {says} |")
        if self.running:
            lines.append(f"| {self.running} | was running when this report was written | | | |")
        lines += [f"| {name} | not started | | | |" for name in self.waiting]
        return "\n".join(lines) + "\n"


def facts_of(arguments, root):
    facts = {"device": arguments.device, "cpus": os.cpu_count(), "date": time.strftime("%Y-%m-%d", time.gmtime())}
    manifest = root / "bundle.json"
    if manifest.exists():
        bundle = json.loads(manifest.read_text())
        facts.update({name: bundle.get(name) for name in ("commit", "changes", "torch")})
    else:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
        facts["commit"] = done.stdout.strip() or "unknown"
    if arguments.device == "cuda":
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,memory.total,driver_version,clocks.sm,temperature.gpu,power.limit",
                               "--format=csv,noheader"], capture_output=True, text=True, check=False, timeout=30)
        facts["gpus"] = done.stdout.strip().splitlines()
        if not facts["gpus"]:
            sys.exit("run_all: error: nvidia-smi shows no GPU; --device cpu runs the stages in small on a CPU")
    return facts


def environment_of(root, bundle):
    """Sources the bundle's env.sh, which finds LibTorch; the tree's own programs find it by themselves."""
    environment = dict(os.environ)
    if bundle:
        done = subprocess.run(["bash", "-c", '. "$1/env.sh" >&2 && env -0', "bash", str(root)], capture_output=True, check=False)
        if done.returncode != 0:
            sys.exit(f"run_all: error: {root}/env.sh failed: {done.stderr.decode(errors='replace').strip()}")
        environment = dict(pair.split("=", 1) for pair in done.stdout.decode().split("\0") if "=" in pair)
    for name in [name for name in environment if name.startswith("TITAN_PLUGIN")]:
        del environment[name]
    return environment


def chosen_stages(arguments):
    names = [stage.name for stage in STAGES]
    wanted = list(arguments.only or [])
    if arguments.again_failed:
        earlier = json.loads(arguments.again_failed.read_text())
        failed = [record["stage"] for record in earlier["stages"] if record["status"] == "failed"]
        wanted += [name for name in [*failed, earlier.get("running"), *earlier.get("not_started", [])] if name in names]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        sys.exit(f"run_all: error: unknown stage {', '.join(unknown)}; the stages are {', '.join(names)}")
    if (arguments.only or arguments.again_failed) and not wanted:
        sys.exit("run_all: nothing failed in that report")
    return [stage for stage in STAGES if not wanted or stage.name in wanted]


def main():
    arguments = parsed()
    chosen = chosen_stages(arguments)
    if arguments.list:
        for stage in chosen:
            print(f"{stage.name:14} at most {stage.seconds:3} s: {stage.what}")
        print(f"sum of the limits: {sum(stage.seconds for stage in chosen)} s")
        return 0
    root = (arguments.bundle or ROOT).resolve()
    programs = root / "bin" if arguments.bundle else root / "build/release/bin"
    missing = [name for name in ("titan", "titan-train", "device_probe", "titan_gpu_tests") if not (programs / name).exists()]
    if missing:
        sys.exit(f"run_all: error: {programs} lacks {', '.join(missing)}; build the bundle with tools/gpu_bundle.sh")
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * arguments.minutes
    report = Report(out, facts_of(arguments, root), chosen)
    environment = environment_of(root, arguments.bundle)
    plants = dict(plant.split("=", 1) for plant in arguments.plant)
    report.write()

    def run(stage, *more):  # fills in one record of the report
        left = deadline - time.monotonic()
        if left < min(stage.least, arguments.limit or stage.least):
            report.ends({"stage": stage.name, "what": stage.what, "status": "left out", "seconds": 0, "limit": 0, "checks": [],
                         "figures": {}, "tables": {}, "unread_lines": 0,
                         "says": [f"{max(0, left):.0f} s were left, it needs {stage.least}"]})
            report.waiting = [name for name in report.waiting if name != stage.name]
            report.write()
            return
        report.starts(stage)
        limit = min(stage.seconds * arguments.patience, arguments.limit or left, left)
        words = [sys.executable, str(HERE / "checks.py"), stage.name, "--root", str(root), "--programs", str(programs), "--device",
                 arguments.device, "--out", str(out), "--seconds", str(max(1, int(limit))), *more]
        if stage.name in plants:
            words = [sys.executable, str(HERE / "planted_fault.py"), plants[stage.name]]
        report.ends(run_stage(stage, words, limit, out / f"{stage.name}.log", environment))

    for stage in chosen:
        run(stage)
        record = report.records[-1]
        print(f"{record['stage']}: {record['status']}, {record['seconds']} s, {len(record['checks'])} checks"
              + "".join(f"\n  failed: {check['check']}: value {check.get('value')}, limit {check.get('limit')}"
                        f" {str(check.get('says', ''))[:300]}" for check in record["checks"] if not check["ok"])
              + "".join(f"\n  {line[:300]}" for line in record["says"]), flush=True)
    failed = [record["stage"] for record in report.records if record["status"] == "failed"]
    if failed and not arguments.no_diagnosis:
        run(DIAGNOSIS, "--failed", *failed)
    print(f"report: {out / 'report.json'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
