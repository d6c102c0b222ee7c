#!/usr/bin/env python3
"""Measures the build in CPU seconds, raw and at reference speed (tools/cost_unit.py): by stage, target, object and header.

    tools/build_costs.py measure costs.json                 builds this tree in a new folder without ccache; records each command
    tools/build_costs.py measure costs.json --source DIR    builds another tree, for example a worktree of an older commit
    tools/build_costs.py table after.json --before before.json [--write docs/results/build_costs.md]
    tools/build_costs.py headers --object PART [--top 30]   the headers and instantiations of one object (-H, -ftime-report)

`measure` builds in four stages: `first loss` (as ./run_train.sh: the program and the plugins of the debug model), `plugins` (all
other programs and plugins), `tests` (the other targets of ./run_tests.sh) and `thorough` (targets that thorough tests build when
they run: fuzzers, programs for a GPU).
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import cost_unit
import same_bits
import test_costs

ROOT = pathlib.Path(__file__).resolve().parents[1]
STAGES = ("first loss", "plugins", "tests", "thorough")
LONGEST = 25


# ---- measure -----------------------------------------------------------------------------------------------------------------

def job_plugins(source, build):
    """The build targets of the debug model's plugins, from `titan list`."""
    shown = subprocess.run([build / "bin/titan", "list", "--for-job", "--job.config_file", "train_configs/debug_model.toml"],
                           cwd=source, capture_output=True, text=True).stdout
    known = {line.split()[0] for line in (build / "lib/titan/plugins/plugins.txt").read_text().splitlines()[1:] if line.strip()}
    return sorted({line.split()[2] for line in shown.splitlines()[1:] if len(line.split()) > 2} & known)


def memory_of(pid):
    """Resident memory in MiB of a process and all its descendants."""
    children = collections.defaultdict(list)
    sizes = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            sizes[int(folder.name)] = int((folder / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        children[parent].append(int(folder.name))
    total, waiting = 0, [pid]
    while waiting:
        process = waiting.pop()
        total += sizes.get(process, 0)
        waiting += children[process]
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def run_ninja(build, targets, jobs):
    """Builds the targets; returns CPU seconds, wall seconds, peak MiB and the kinds of compiler warnings."""
    before, start, peak = cost_unit.children_seconds(), time.monotonic(), 0
    with tempfile.TemporaryFile("w+") as output:
        ninja = subprocess.Popen(["ninja", "-C", build, "-j", str(jobs), *targets], stdout=output, stderr=subprocess.STDOUT,
                                 stdin=subprocess.DEVNULL, env={**os.environ, "NINJA_STATUS": "@ "})
        while ninja.poll() is None:
            peak = max(peak, memory_of(ninja.pid))
            time.sleep(0.5)
        output.seek(0)
        lines = [line for line in output.read().splitlines() if not line.startswith(("@ ", "ninja: "))]
    if ninja.returncode != 0:
        raise SystemExit("build_costs: error: the build failed:\n" + "\n".join(lines[-40:]))
    warnings = set(re.findall(r"\[(-W[a-z0-9=-]+)\]", "\n".join(lines)))
    return cost_unit.children_seconds() - before, time.monotonic() - start, peak, warnings


def has_target(build, name):
    return subprocess.run(["ninja", "-C", build, "-t", "query", name], capture_output=True).returncode == 0


def measure(arguments):
    source = arguments.source.resolve()
    torch = arguments.torch or same_bits.torch_root()
    if not torch:
        raise SystemExit("build_costs: error: no LibTorch found; run tools/setup.sh first, or pass its folder with --torch")
    torch = pathlib.Path(torch).resolve()
    build = pathlib.Path(arguments.build or tempfile.mkdtemp(prefix="titan_build_costs_")).resolve()
    shutil.rmtree(build, ignore_errors=True)
    log = build.with_suffix(".costs")
    log.unlink(missing_ok=True)
    log.touch()
    launcher = ";".join([sys.executable, "-S", "-E", str(ROOT / "tools/costs/record.py"), str(log)])
    factor = cost_unit.median_factor()
    subprocess.run(["cmake", "-S", source, "--preset", "release", "-B", build, f"-DTITAN_TORCH_ROOT={torch}", "-DCCACHE:FILEPATH=",
                    *(f"-DCMAKE_{kind}_LAUNCHER={launcher}" for kind in ("CXX_COMPILER", "CXX_LINKER")),
                    *arguments.define], check=True, stdout=subprocess.DEVNULL, cwd=source)
    stages = []
    for stage in STAGES:
        seen = len(log.read_text().splitlines())
        cpu, wall, peak, warnings = 0, 0, 0, set()
        targets = {"first loss": ["titan"], "plugins": ["programs", "plugins"], "tests": ["all"],
                   "thorough": [name for name in ("fuzz_programs", "gpu_programs") if has_target(build, name)]}[stage]
        while targets:
            done = run_ninja(build, targets, arguments.jobs)
            cpu, wall, peak = cpu + done[0], wall + done[1], max(peak, done[2])
            warnings.update(done[3])
            # the flavors of a model are known once its plugin is built, so the plugins are listed until none is new
            again = [f"{name}.plugin" for name in job_plugins(source, build)] if stage == "first loss" else []
            targets = again if again and again != targets else []
        stages.append({"stage": stage, "cpu": cpu, "wall": wall, "mib": peak, "warnings": sorted(warnings),
                       "commands": len(log.read_text().splitlines()) - seen})
        print(f"{stage}: {cpu:.0f} CPU s, {wall:.0f} s, peak {peak:.0f} MiB, {len(warnings)} kinds of warnings", flush=True)
        if stage == arguments.until:
            break
    factor = (factor + cost_unit.median_factor()) / 2
    commands = [json.loads(line) for line in log.read_text().splitlines()]
    for command in commands:
        command["output"] = command["output"].removeprefix(f"{build}/")
    git = lambda *what: subprocess.run(["git", "-C", source, *what], capture_output=True, text=True).stdout.strip()
    arguments.file.write_text(json.dumps({
        "commit": git("rev-parse", "--short=12", "HEAD"), "date": datetime.date.today().isoformat(), "host_factor": factor,
        "jobs": arguments.jobs, "stages": stages, "commands": commands}, indent=1) + "\n")
    if not arguments.build:
        shutil.rmtree(build)
        log.unlink()
    return 0


# ---- table -------------------------------------------------------------------------------------------------------------------

def target_of(output):
    """The target that a file is compiled for; `links` for programs and libraries."""
    found = re.search(r"CMakeFiles/([^/]+)\.dir/(.*)", output)
    if not found:
        return "links"
    return "precompiled headers" if "cmake_pch" in found[2] else found[1]


def by_target(data):
    targets = collections.Counter()
    for command in data["commands"]:
        targets[target_of(command["output"])] += command["cpu"] / data["host_factor"]
    return targets


def describe(data):
    return f"{data['commit']} on {data['date']} (host factor {data['host_factor']:.2f}, -j{data['jobs']})"


def table(arguments):
    after = json.loads(arguments.file.read_text())
    before = json.loads(arguments.before.read_text()) if arguments.before else None
    factor = after["host_factor"]
    out = ["# What the build costs", "",
           f"Written by `tools/build_costs.py table AFTER.json{' --before BEFORE.json' if before else ''} --write "
           "docs/results/build_costs.md` from the records of `tools/build_costs.py measure`: a build without ccache in a new folder. "
           "Costs are CPU seconds at reference speed (`tools/cost_unit.py`); in brackets, CPU seconds of the measuring host.", "",
           f"After: {describe(after)}" + (f". Before: {describe(before)}" if before else "") + ".", ""]
    total = lambda data, until: sum(stage["cpu"] for stage in data["stages"][:until])
    rows = []
    for number, name in ((1, "first loss (./run_train.sh)"), (2, "all programs and plugins"),
                         (3, "what ./run_tests.sh builds"), (4, "everything")):
        if number > len(after["stages"]):
            break
        now = total(after, number)
        row = [name]
        if before:
            old = total(before, number)
            row += [f"{old / before['host_factor']:.0f} ({old:.0f})"]
        row += [f"{now / factor:.0f} ({now:.0f})"]
        if before:
            row += [f"{now / factor / (old / before['host_factor']):.0%}"]
        rows.append(row)
    objects = lambda data: [c for c in data["commands"] if "CMakeFiles/" in c["output"] and c["output"].endswith((".o", ".gch"))]
    longest = lambda data: max(c["cpu"] / data["host_factor"] for c in objects(data))
    peak = lambda data: max(stage["mib"] for stage in data["stages"])
    warnings = lambda data: str(len({kind for stage in data["stages"] for kind in stage["warnings"]}))
    for name, of in (("longest object", lambda d: f"{longest(d):.1f}"), ("objects", lambda d: str(len(objects(d)))),
                     ("peak of memory, MiB", lambda d: f"{peak(d):.0f}"), ("kinds of compiler warnings", warnings)):
        rows.append([name] + ([of(before)] if before else []) + [of(after)] + ([""] if before else []))
    out += [test_costs.table(["", *(["before"] if before else []), "after", *(["share"] if before else [])], rows), "",
            "## By target", ""]
    new, old = by_target(after), by_target(before) if before else {}
    names = sorted(set(new) | set(old), key=lambda name: -max(new.get(name, 0), old.get(name, 0)))
    out += [test_costs.table(["target", *(["before"] if before else []), "after"],
                     [[name, *([f"{old.get(name, 0):.1f}"] if before else []), f"{new.get(name, 0):.1f}"] for name in names
                      if max(new.get(name, 0), old.get(name, 0)) >= 2]), "",
            f"## The {LONGEST} most expensive objects", ""]
    dearest = sorted(objects(after), key=lambda c: -c["cpu"])[:LONGEST]
    out += [test_costs.table(["object", "CPU s at reference", "MiB"],
                     [[f"`{re.sub(r'CMakeFiles/|[.]dir|[.]o$', '', c['output'])}`", f"{c['cpu'] / factor:.1f}", f"{c['mib']:.0f}"]
                      for c in dearest]), ""]
    text = "\n".join(out)
    if arguments.write:
        arguments.write.write_text(text)
    else:
        print(text)
    return 0


# ---- headers -----------------------------------------------------------------------------------------------------------------

def headers(arguments):
    """Compiles one object once more: the phases of -ftime-report, and how many lines each included header brings."""
    build = ROOT / "build/release"
    found = [entry for entry in json.loads((build / "compile_commands.json").read_text())
             if arguments.object in entry.get("output", "") + entry["file"]]
    if not found:
        raise SystemExit(f"build_costs: error: no object of build/release has '{arguments.object}' in its name")
    command = [part for part in shlex.split(found[0]["command"])]
    while not re.search(r"(g|c|clang)\+\+", os.path.basename(command[0])) or "ccache" in command[0]:
        command.pop(0)  # ccache, and the script that sets its environment
    command[command.index("-o") + 1] = os.devnull
    print(found[0]["file"])
    timed = subprocess.run([*command, "-ftime-report"], cwd=found[0]["directory"], capture_output=True, text=True)
    rows = re.findall(r"^ (.+?) *: *([\d.]+) \(", timed.stderr, re.M)
    for phase, seconds in sorted(((p.strip(), float(s)) for p, s in rows), key=lambda row: -row[1])[:arguments.top]:
        print(f"{seconds:8.2f} s  {phase}")
    shown = subprocess.run([*command, "-H", "-fsyntax-only"], cwd=found[0]["directory"], capture_output=True, text=True)
    names = re.findall(r"^\.+ (.+)$", shown.stderr, re.M)
    sizes = [(len(open(name, "rb").read().splitlines()), name) for name in set(names) if os.path.isfile(name)]
    print(f"{len(sizes)} headers, {sum(lines for lines, _ in sizes)} lines")
    for lines, name in sorted(sizes, reverse=True)[:arguments.top]:
        print(f"{lines:8} lines  {name}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("file", type=pathlib.Path)
    measuring.add_argument("--source", type=pathlib.Path, default=ROOT)
    measuring.add_argument("--torch", type=pathlib.Path, help="folder of LibTorch; default: the one in .venv")
    measuring.add_argument("--build", type=pathlib.Path, help="build in this folder and keep it; default: a temporary folder")
    measuring.add_argument("--jobs", type=int, default=2)
    measuring.add_argument("--until", choices=STAGES, default=STAGES[-1])
    measuring.add_argument("--define", action="append", default=[], metavar="-DNAME=VALUE", help="passed to cmake")
    measuring.set_defaults(run=measure)
    showing = commands.add_parser("table")
    showing.add_argument("file", type=pathlib.Path)
    showing.add_argument("--before", type=pathlib.Path)
    showing.add_argument("--write", type=pathlib.Path)
    showing.set_defaults(run=table)
    looking = commands.add_parser("headers")
    looking.add_argument("--object", required=True)
    looking.add_argument("--top", type=int, default=30)
    looking.set_defaults(run=headers)
    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
