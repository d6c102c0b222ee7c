#!/usr/bin/env python3
"""Writes docs/results/gpu.md from the report.json files of tests/gpu/run_all.sh.

    tools/gpu_report.py OUT/report.json                    prints the tables
    tools/gpu_report.py FIRST.json LATER.json --keep       saves the runs in tests/gpu/runs.json, without details that the page omits
    tools/gpu_report.py --write                            writes docs/results/gpu.md from the saved runs
    tools/gpu_report.py --check                            fails if the page differs from the saved runs

A later run of a stage replaces an earlier one. This script writes the text between the markers of docs/results/gpu.md; people write
the rest. Without a saved run the page says so, and README must say "has not run on a GPU yet".
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/results/gpu.md"
RUNS = ROOT / "tests/gpu/runs.json"
BEGIN, END = "<!-- made by tools/gpu_report.py -->", "<!-- end -->"
NONE = "This has not run on a GPU yet. `tests/gpu/run_all.sh --list` shows the stages."
WORST = 12  # number of operations that the page shows, those closest to their error limit


def merged(reports):
    """{stage: (record, number of its report)} of the latest report that ran the stage."""
    found = {}
    for number, report in enumerate(reports, 1):
        for record in report["stages"]:
            if record["status"] != "left out" or record["stage"] not in found:
                found[record["stage"]] = (record, number)
    return found


def table(head, rows, right=()):
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("---:" if name in right else "---" for name in head) + "|"]
    return lines + ["| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in row) + " |" for row in rows]


def number(value, digits=1):
    return "" if value is None else f"{value:,.{digits}f}" if isinstance(value, (int, float)) else str(value)


def percent(value):
    return "" if value is None else f"{100 * value:.1f} %"


def machine(reports):
    rows = []
    for count, report in enumerate(reports, 1):
        facts = report["machine"]
        commit = str(facts.get("commit", ""))[:12] + (" with changes" if facts.get("changes") else "")
        rows.append((count, ", ".join(facts.get("gpus", [facts["device"]])), facts["cpus"], facts["date"], commit, facts.get("torch", ""),
                     number(report["seconds"], 0)))
    return table(["run", "GPU, memory, driver, clock, temperature, power limit", "CPU cores", "date", "commit", "torch", "seconds"], rows)


def overview(found):
    rows = []
    for record, count in found.values():
        failed = [check["check"] for check in record["checks"] if not check["ok"]]
        rows.append((record["stage"], record["what"], count, record["status"], record["seconds"], len(record["checks"]), len(failed)))
    return table(["stage", "what", "run", "status", "seconds", "checks", "failed"], rows, ("seconds", "checks", "failed"))


def failures(found):
    lines = []
    for record, _ in found.values():
        for check in record["checks"]:
            if not check["ok"]:
                says = str(check.get("says", ""))[:400].replace("\n", " ")
                lines.append(f"- {record['stage']}: {check['check']}: value {check.get('value')}, limit {check.get('limit')}. {says}")
        lines += [f"- {record['stage']}: {line[:300]}" for line in record["says"][:2]]
    return lines or ["None."]


def errors(record):
    rows = []
    for item in record["tables"].get("operations", []):
        for output in item.get("outputs", []):
            if isinstance(output.get("error"), (int, float)) and output.get("limit"):
                rows.append((output["error"] / output["limit"], item["operation"], item.get("shape", ""), item.get("dtype", ""),
                             output["name"], f"{output['error']:.2e}", f"{output['limit']:.0e}"))
    rows.sort(key=lambda row: -row[0])
    seen = [item for item in record["tables"].get("operations", []) if item.get("outputs")]
    same = sum(1 for item in seen if item.get("results") == 1)
    default = sorted({item["operation"] for item in seen if item.get("same_by_default") is False})
    return [f"{len(seen)} cases of operations, shapes and dtypes; {same} gave the same bits in every repetition under deterministic "
            f"algorithms. By default these may give other bits from run to run: {', '.join(default) or 'none'}. The outputs "
            "closest to their limit:", "", *table(["operation", "shape", "dtype", "output", "error", "limit"],
                                                   [row[1:] for row in rows[:WORST]])]


def timed(reports):
    """{(operation, direction, shape, dtype): (microseconds, number of the run)} of the first run that timed it."""
    found = {}
    for count, report in enumerate(reports, 1):
        for record in report["stages"]:
            for item in record["tables"].get("speed", []):
                if "us" in item:
                    found.setdefault(tuple(item.get(key) for key in ("operation", "direction", "shape", "dtype")), (item["us"], count))
    return found


def speeds(record, number_of_run, reports):
    rows, ceilings, before = [], {}, timed(reports)
    for item in record["tables"].get("speed", []):
        ceilings = item.get("ceilings", ceilings)
        if "us" not in item:
            continue
        first, count = before[tuple(item.get(key) for key in ("operation", "direction", "shape", "dtype"))]
        rows.append((item["operation"], item.get("direction", ""), item.get("shape", ""), item.get("dtype", ""),
                     number(first) if count != number_of_run else "", number(item["us"]),
                     number(item.get("gb_per_s"), 0) if item.get("bound") != "matrix units" and item.get("gb_per_s") else "",
                     number(item.get("tflops"), 0) if item.get("tflops") else "",
                     percent(item["share"]) if item.get("share") and item["operation"] != "gemm" else ""))
    if not rows:
        return []
    text = ", ".join(f"{name.replace('_', ' ')} {number(value, 0)}" for name, value in ceilings.items())
    return [f"Measured ceilings: {text}. The last column is the share of the ceiling that bounds the operation; *first* is the time in "
            "the first run that timed it, before the improvements that followed.", "",
            *table(["operation", "direction", "shape", "dtype", "first, us", "us", "GB/s", "TFLOP/s", "of ceiling"], rows,
                   ("first, us", "us", "GB/s", "TFLOP/s", "of ceiling"))]


def trainings(reports):
    """For every job, the latest run that measured it; jobs that no run measured are left out."""
    latest = {}
    for count, report in enumerate(reports, 1):
        for record in report["stages"]:
            for item in record["tables"].get("training", []):
                if item.get("tokens_per_second"):
                    latest[item["job"], item["by"]] = (item, count)
    rows = [(job, by, count, item.get("memory", ""), number(item["tokens_per_second"], 0), percent(item.get("mfu_full_attention")),
             percent(item.get("mfu_causal_half")), number(item.get("peak_gib")), number(item.get("to_first_step")))
            for (job, by), (item, count) in sorted(latest.items())]
    return table(["job", "by", "run", "memory", "tokens/s", "MFU, full attention", "MFU, causal half", "peak GiB",
                  "seconds to step 1"], rows, ("tokens/s", "peak GiB")) if rows else []


def others(found):
    """All remaining tables and figures."""
    lines = []
    for record, _ in found.values():
        for name, rows in record["tables"].items():
            if name in ("operations", "speed", "training", "float8", "diagnosis") or not rows:
                continue
            head = list(dict.fromkeys(key for row in rows for key in row))
            lines += ["", f"### {record['stage']}: {name}", "", *table(head, [[row.get(key, "") for key in head] for row in rows])]
        if record["figures"]:
            lines += ["", f"### {record['stage']}", "", *table(["figure", "value"], record["figures"].items())]
    return lines


def page(reports):
    found = merged(reports)
    lines = [*machine(reports), "", *overview(found), "", "## Failures", "", *failures(found)]
    if trainings(reports):
        lines += ["", "## Training", "", *trainings(reports)]
    if "operations" in found:
        lines += ["", "## Errors of operations", "", "Relative norm of the error against float64, on inputs rounded to the dtype first.", "",
                  *errors(found["operations"][0])]
    if "speed" in found:
        lines += ["", "## Speed of operations", "", *speeds(*found["speed"], reports)]
    return "\n".join([*lines, "", "## Further tables", *others(found)])


def replaced(text, made):
    before, rest = text.split(BEGIN, 1)
    return before + BEGIN + "\n" + made + "\n" + END + rest.split(END, 1)[1]


def kept(report):
    """A report without details that the page omits: passed checks keep only their name, and paths of the machine are removed."""
    report = json.loads(re.sub(r"/(?:tmp|opt|root|home)/[\w./-]*", "", json.dumps(report)))
    stages = [{**record, "checks": [check if not check["ok"] else {"check": check["check"], "ok": True} for check in record["checks"]]}
              for record in report["stages"]]
    return {**report, "stages": stages}


def made_of(reports):
    return page(reports) if reports else NONE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.reports:
        reports = [kept(json.loads(path.read_text())) for path in options.reports]
    else:
        reports = json.loads(RUNS.read_text()) if RUNS.exists() else []
    if options.keep:
        lines = [json.dumps({**report, "stages": []})[:-2] + "\n" + ",\n".join(json.dumps(record) for record in report["stages"]) + "]}"
                 for report in reports]
        RUNS.write_text("[" + ",\n".join(lines) + "]\n")
    made, text = made_of(reports), PAGE.read_text()
    if options.check:
        if replaced(text, made) != text:
            sys.exit(f"error: {PAGE.relative_to(ROOT)} differs from the saved runs; run tools/gpu_report.py --write")
        if not reports and "has not run on a GPU yet" not in (ROOT / "README.md").read_text():
            sys.exit("error: README.md must say 'has not run on a GPU yet' while tests/gpu/runs.json has no run")
        print(f"{PAGE.relative_to(ROOT)} shows {len(reports)} runs")
    elif options.write:
        PAGE.write_text(replaced(text, made))
    elif not options.keep:
        print(made)


if __name__ == "__main__":
    main()
