#!/usr/bin/env python3
"""Writes docs/gpu.md from the report.json files of tests/gpu/run_all.sh.

    tools/gpu_report.py OUT/report.json                    the page on standard output
    tools/gpu_report.py FIRST.json LATER.json --write      writes docs/gpu.md; a later run of a stage replaces an earlier one
    tools/gpu_report.py --check                            fails where the page was not made by this script
    tools/gpu_report.py --none --write                     the page as long as there was no run

Everything between the markers of docs/gpu.md comes from here; the text around them is written by hand.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/gpu.md"
BEGIN, END = "<!-- made by tools/gpu_report.py -->", "<!-- end -->"
NONE = "No GPU has run this yet. `tests/gpu/run_all.sh --list` shows what will be run."
WORST = 12  # operations with the largest share of their error limit that the page shows


def merged(reports):
    """{stage: (record, number of its report)}, later reports first in doubt."""
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
            f"algorithms. By default these may give other bits from run to run: {', '.join(default) or 'none'}. The outputs that come "
            "closest to their limit:", "", *table(["operation", "shape", "dtype", "output", "error", "limit"],
                                                   [row[1:] for row in rows[:WORST]])]


def speeds(record):
    rows, ceilings = [], {}
    for item in record["tables"].get("speed", []):
        ceilings = item.get("ceilings", ceilings)
        if "us" not in item:
            continue
        rows.append((item["operation"], item.get("direction", ""), item.get("shape", ""), item.get("dtype", ""), number(item["us"]),
                     number(item.get("gb_per_s"), 0) if item.get("bound") != "matrix units" and item.get("gb_per_s") else "",
                     number(item.get("tflops"), 0) if item.get("tflops") else "",
                     percent(item["share"]) if item.get("share") and item["operation"] != "gemm" else ""))
    if not rows:
        return []
    text = ", ".join(f"{name.replace('_', ' ')} {number(value, 0)}" for name, value in ceilings.items())
    return [f"Measured ceilings: {text}. The last column is the share of the ceiling that bounds the operation.", "",
            *table(["operation", "direction", "shape", "dtype", "us", "GB/s", "TFLOP/s", "of ceiling"], rows,
                   ("us", "GB/s", "TFLOP/s", "of ceiling"))]


def trainings(found):
    rows = []
    for record, count in found.values():
        for item in record["tables"].get("training", []):
            rows.append((item["job"], item["by"], count, item.get("memory", ""), number(item.get("tokens_per_second"), 0),
                         percent(item.get("mfu_full_attention")), percent(item.get("mfu_causal_half")), number(item.get("peak_gib")),
                         number(item.get("to_first_step"))))
    rows.sort(key=lambda row: (row[0].split()[0], row[0], row[1]))
    return table(["job", "by", "run", "memory", "tokens/s", "MFU, full attention", "MFU, causal half", "peak GiB",
                  "seconds to step 1"], rows, ("tokens/s", "peak GiB")) if rows else []


def others(found):
    """Every remaining table and figure, as it is."""
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
    if trainings(found):
        lines += ["", "## Training", "", *trainings(found)]
    if "operations" in found:
        lines += ["", "## Errors of operations", "", "Relative norm of the error against float64, inputs rounded first.", "",
                  *errors(found["operations"][0])]
    if "speed" in found:
        lines += ["", "## Speed of operations", "", *speeds(found["speed"][0])]
    return "\n".join([*lines, "", "## Further tables", *others(found)])


def replaced(text, made):
    before, rest = text.split(BEGIN, 1)
    return before + BEGIN + "\n" + made + "\n" + END + rest.split(END, 1)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", type=pathlib.Path)
    parser.add_argument("--none", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        text = PAGE.read_text()
        if text.count(BEGIN) != 1 or text.count(END) != 1:
            sys.exit(f"error: {PAGE.relative_to(ROOT)} has no pair of markers")
        made = text.split(BEGIN)[1].split(END)[0]
        if NONE in made and "has not run on a GPU yet" not in (ROOT / "README.md").read_text():
            sys.exit("error: README.md must say 'has not run on a GPU yet' as long as docs/gpu.md holds no run")
        return
    if not options.reports and not options.none:
        parser.error("name a report, or --none")
    made = NONE if options.none else page([json.loads(path.read_text()) for path in options.reports])
    if options.write:
        PAGE.write_text(replaced(PAGE.read_text(), made))
    else:
        print(made)


if __name__ == "__main__":
    main()
