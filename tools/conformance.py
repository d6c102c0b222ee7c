#!/usr/bin/env python3
"""Runs titan check --conformance over the plugins of this tree, and writes the list of tests into its page.

    tools/conformance.py                      # every plugin of build/release; exit code 1 when one fails
    tools/conformance.py lion jsonl_dataset   # these
    tools/conformance.py --write docs/results/conformance.md   # every plugin, and the table of results
    tools/conformance.py lion --write docs/results/conformance.md   # replaces the rows of this plugin in the table
    tools/conformance.py --page               # writes the list of tests into docs/guides/conformance.md; --check: only compares

plugins/<kinds>/<name>/conformance.toml holds what a plugin's author states. TITAN_PROGRAM names the program, TITAN_SOURCE_DIR the tree.
Plugins whose jobs ask torchft's lighthouse for members get one each, so the script needs torchft for them.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[1]))
TITAN = pathlib.Path(os.environ.get("TITAN_PROGRAM", ROOT / "build/release/bin/titan"))
PLUGINS = TITAN.parents[1] / "lib/titan/plugins"
PAGE = ROOT / "docs/guides/conformance.md"
sys.path.insert(0, str(ROOT / "tests/end_to_end"))
import lighthouse  # noqa: E402

WITH_LIGHTHOUSE = {"replicas", "semi_sync"}
BEGIN, END = "<!-- list of tests: tools/conformance.py --page -->\n", "<!-- end of the list -->\n"


def folders():
    """The source folder of each plugin that is built, by the name of its file."""
    found = {}
    for cmake in sorted(ROOT.glob("plugins/*/*/CMakeLists.txt")):
        for name in re.findall(r"titan_add_plugin\((\w+)", cmake.read_text()):
            if (PLUGINS / f"{name}.plugin.so").exists():
                found[name] = cmake.parent
    return found


@contextlib.contextmanager
def environment_of(name):
    """The environment of a plugin's jobs. A lighthouse serves one plugin, because jobs of two would become members of one quorum."""
    if name not in WITH_LIGHTHOUSE:
        yield os.environ
        return
    # the members of a job that has ended are forgotten soon
    with lighthouse.Lighthouse(min_replicas=1, join_timeout_ms=100, heartbeat_timeout_ms=1000) as server:
        yield {**os.environ, "TORCHFT_LIGHTHOUSE": server.url}


def proved(name, folder, seed, timeout):
    """Exit code, text and the results as JSON; None without them."""
    expect = ["--expect", folder / "conformance.toml"] if (folder / "conformance.toml").exists() else []
    with tempfile.TemporaryDirectory() as scratch, environment_of(name) as environment:
        answer = pathlib.Path(scratch) / "result.json"
        run = subprocess.run([TITAN, "check", PLUGINS / f"{name}.plugin.so", "--conformance", "--json", answer, "--reproduce", str(seed),
                              "--test-timeout", str(timeout), *expect], env=environment, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        return run.returncode, run.stdout + run.stderr, json.loads(answer.read_text()) if answer.exists() else None


def tests():
    with tempfile.TemporaryDirectory() as scratch:
        answer = pathlib.Path(scratch) / "tests.json"
        subprocess.run([TITAN, "check", "--list", "--json", answer], check=True)
        return json.loads(answer.read_text())


def list_text():
    by_kind = collections.defaultdict(list)
    for test in tests():
        by_kind[test["kind"]].append(test)
    text = ""
    for kind, rows in by_kind.items():
        text += f"\n### {'Every kind' if kind == '*' else kind}\n\n| test | what it states | ability | tolerance |\n|---|---|---|---|\n"
        for row in rows:
            tolerance = "" if row["tolerance"] < 0 else f"{row['tolerance']:g}"
            text += f"| `{row['test']}` | {row['description'].replace('|', chr(92) + '|')} | {row['ability'] or ''} | {tolerance} |\n"
    return text + "\n"


def results_text(results, old=""):
    """The results as a page. The rows of `old`, a page, stay for plugins that `results` does not have."""
    kit = next(iter(results.values()))["kit"]
    text = (f"# Conformance of the plugins that ship\n\n`tools/conformance.py --write docs/results/conformance.md` writes this page: the results of "
            f"`titan check --conformance`, kit {kit} ([conformance.md](../guides/conformance.md)).\n\n"
            "| plugin | passed | failed | expected failures | not applicable | skipped |\n|---|---|---|---|---|---|\n")
    rows, expected = (dict(table) for table in old_rows(old))
    for result in results.values():
        counts = result["counts"]
        columns = [counts[verdict] for verdict in ("passed", "failed", "expected failure", "not applicable", "skipped")]
        rows[result['plugin'].split()[0]] = f"| {result['plugin']} | {' | '.join(map(str, columns))} |\n"
        for test in result["tests"]:
            expected.pop(test["test"], None)
            if test["verdict"] == "expected failure":
                expected[test["test"]] = f"| `{test['test']}` | {first_line(test['detail'])} |\n"
    text += "".join(row for _, row in sorted(rows.items()))
    if expected:
        text += f"\n## Expected failures\n\n| test | reason |\n|---|---|\n{''.join(row for _, row in sorted(expected.items()))}"
    return text


def old_rows(page):
    """The rows of a page: of plugins by name, and of expected failures by test."""
    return (re.findall(r"^(?=\| (\w+) [\d.]+ \|)(.*\n)", page, re.MULTILINE),
            re.findall(r"^(?=\| `([^`]+)` \|)(.*\n)", page, re.MULTILINE))


def first_line(text):
    return text.splitlines()[0]


def page(checks):
    old = PAGE.read_text()
    before, rest = old.split(BEGIN)
    new = before + BEGIN + list_text() + END + rest.split(END)[1]
    if checks and new != old:
        print(f"{PAGE} does not have the tests of the kit; write them with tools/conformance.py --page")
    elif not checks:
        PAGE.write_text(new)
    return 1 if checks and new != old else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PLUGIN")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="plugins at a time")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one test")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.page or arguments.check:
        return page(arguments.check)
    known = folders()
    for name in arguments.names:
        if name not in known:
            parser.error(f"{name} is not built; there are {', '.join(known)}")
    names = arguments.names or list(known)
    members = sorted(WITH_LIGHTHOUSE & set(names))
    if members and not lighthouse.extension():
        sys.exit(f"conformance: error: {', '.join(members)} need torchft's lighthouse, but {lighthouse.MISSING}")
    total, failed, results = collections.Counter(), [], {}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = {name: pool.submit(proved, name, known[name], arguments.seed, arguments.timeout) for name in names}
        for name, run in runs.items():
            code, text, result = run.result()
            counts = result["counts"] if result else {}
            total.update(counts)
            if result:
                results[name] = result
            print(f"{name:24} exit code {code}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}", flush=True)
            if code != 0:
                failed.append(name)
                print("\n".join(text.splitlines() if not result else [
                    f"    {test['test']}: {test['detail']}" for test in result["tests"] if test["verdict"] == "failed"]), flush=True)
    if arguments.write and results:
        old = arguments.write.read_text() if arguments.names and arguments.write.exists() else ""
        arguments.write.write_text(results_text(results, old))
    print(f"{len(names)} plugins, {len(failed)} do not conform: {', '.join(f'{count} {verdict}' for verdict, count in total.items())}")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
