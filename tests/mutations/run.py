#!/usr/bin/env python3
"""Mutation testing: makes small wrong changes to Titan, one at a time, and reports those that no test notices.

mutations.toml lists the changes. The script applies each to a copy of the tree (--copy), builds the affected targets,
runs the nearest tests, and restores the file. A change is killed when a test fails, crashes or exceeds its time limit.
The log has one JSON line for each result: --resume skips changes that have a result for the copy's commit.

    tests/mutations/run.py --copy ../titan-mutations                  makes the copy (a git worktree) if it is missing
    tests/mutations/run.py --copy ../titan-mutations --only 'data.*'  some of them
    tests/mutations/run.py --list                                     the list, without running anything

Exit code 0 when at least the share --least was killed and every change still applies, else 1.
"""
import argparse
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
KILLED, SURVIVED, BROKEN = "killed", "survived", "does not apply"
SKIPPED = 77  # exit code of a Python test that could not run
# programs find Titan's libraries when they start: otherwise each change to a library would link every plugin
# again
CONFIGURE = ["--preset", "release", "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON"]


def read_mutations(path):
    mutations = tomllib.loads(path.read_text())["mutation"]
    names = [mutation["name"] for mutation in mutations]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        sys.exit(f"error: {path} names twice: {', '.join(twice)}")
    for mutation in mutations:
        has_filter = "program" in mutation and "filter" in mutation
        if has_filter == ("ctest" in mutation):
            sys.exit(f"error: {mutation['name']} needs program and filter, or ctest")
        if mutation["find"] == mutation["replace"]:
            sys.exit(f"error: {mutation['name']} changes nothing")
    return mutations


def digest(mutation):
    keys = ["file", "find", "replace", "program", "filter", "ctest"] + (["arguments"] if "arguments" in mutation else [])
    text = json.dumps([mutation.get(key) for key in keys])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Outcome:
    """Runs a command. Returns its exit code (None: it exceeded the limit) and its output."""

    def __init__(self, command, folder, limit, variables=None):
        begin = time.monotonic()
        try:
            done = subprocess.run(command, cwd=folder, timeout=limit, env=os.environ | (variables or {}),
                                  stdin=subprocess.DEVNULL, text=True,
                                  errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.code, self.text = done.returncode, done.stdout
        except subprocess.TimeoutExpired as expired:  # subprocess.run has ended the program
            written = expired.stdout or b""
            self.code, self.text = None, written if isinstance(written, str) else written.decode(errors="replace")
        self.seconds = time.monotonic() - begin


class Copy:
    """The copy of the tree that is changed, and its build folder."""

    def __init__(self, folder, jobs, test_limit):
        self.folder, self.jobs, self.test_limit = folder, jobs, test_limit
        self.build_folder = folder / "build/release"
        self.note = self.build_folder / "mutation.json"  # the change that a killed run has left applied
        self.stale = set()  # targets that were built with an earlier change

    def prepare(self):
        if not self.folder.exists():
            run = ["git", "worktree", "add", "--detach", str(self.folder), "HEAD"]
            subprocess.run(run, cwd=SOURCE, check=True)
        if not (self.build_folder / "build.ninja").exists():
            venv = SOURCE / ".venv"
            if venv.exists() and not (self.folder / ".venv").exists():
                (self.folder / ".venv").symlink_to(venv)
            subprocess.run(["cmake", *CONFIGURE], cwd=self.folder, check=True)
        if self.note.exists():
            left = json.loads(self.note.read_text())
            self.restore(self.folder / left["file"], left["text"])
            self.stale.update(left["targets"])

    def commit(self):
        ask = ["git", "rev-parse", "HEAD"]
        return subprocess.run(ask, cwd=self.folder, check=True, text=True, capture_output=True).stdout.strip()

    def build(self, targets):
        wanted = sorted(self.stale | set(targets))
        outcome = Outcome(["ninja", "-C", str(self.build_folder), f"-j{self.jobs}", *wanted], self.folder, None)
        if outcome.code == 0:
            self.stale.clear()
        return outcome

    def command_of(self, name):
        """The command and environment of a ctest test."""
        ask = ["ctest", "--test-dir", str(self.build_folder), "-R", name, "--show-only=json-v1"]
        tests = json.loads(subprocess.run(ask, check=True, text=True, capture_output=True).stdout)["tests"]
        if len(tests) != 1:
            sys.exit(f"error: ctest knows {len(tests)} tests of the name {name}, one is wanted")
        variables = [item["value"] for item in tests[0]["properties"] if item["name"] == "ENVIRONMENT"]
        return tests[0]["command"], dict(line.split("=", 1) for line in sum(variables, []))

    def test(self, mutation, limit=None):
        if "arguments" in mutation:
            command, variables = self.command_of(mutation["ctest"])
            return Outcome([*command, *mutation["arguments"]], self.folder, limit or self.test_limit, variables)
        if "ctest" in mutation:
            command = ["ctest", "--test-dir", str(self.build_folder), "-R", mutation["ctest"],
                       "--no-tests=error", "--output-on-failure"]
        else:
            command = [str(self.build_folder / "bin" / mutation["program"]), "--gtest_brief=0",
                       "--gtest_filter=" + mutation["filter"]]
        return Outcome(command, self.folder, limit or self.test_limit)

    def restore(self, path, text):
        path.write_text(text)
        self.note.unlink(missing_ok=True)


def targets_of(mutation):
    return mutation.get("targets", [mutation.get("program", "titan")])


def tests_named(text, word):
    """Names after gtest's '[  FAILED  ]' or '[ RUN      ]', or failed tests of ctest or unittest."""
    patterns = [r"^\[ *" + word + r" *\] ([\w/]+\.[\w/]+)"]
    if word == "FAILED":
        patterns += [r"^\s*\d+ - (\S+) \((?:Failed|Timeout)", r"^(?:FAIL|ERROR): \S+ \(__main__\.([\w.]+)\)"]
    for pattern in patterns:
        if names := re.findall(pattern, text, re.MULTILINE):
            return list(dict.fromkeys(names))
    return []


def judge(outcome):
    """(result, cause) from the outcomes of the tests."""
    if outcome.code == 0:
        is_empty = re.search(r"^\[==========\] 0 tests? ran", outcome.text, re.MULTILINE) or \
            re.search(r"^Ran 0 tests", outcome.text, re.MULTILINE)
        return (SURVIVED, "there is no such test") if is_empty else (SURVIVED, "")
    if outcome.code == SKIPPED:
        return SURVIVED, "its test was skipped"
    failed = tests_named(outcome.text, "FAILED")
    if failed:
        return KILLED, failed[0] + (f" and {len(failed) - 1} more" if len(failed) > 1 else "")
    running = tests_named(outcome.text, "RUN")
    if outcome.code is None:
        return KILLED, "time limit in " + (running[-1] if running else "the tests")
    return KILLED, "crash in " + (running[-1] if running else "the tests")


def apply(copy, mutation):
    """Builds and tests one change. Returns (result, cause)."""
    path = copy.folder / mutation["file"]
    original = path.read_text() if path.exists() else ""
    count = original.count(mutation["find"])
    if count != 1:
        return BROKEN, f"the text to replace occurs {count} times in {mutation['file']}"
    targets = targets_of(mutation)
    copy.note.write_text(json.dumps({"file": mutation["file"], "text": original, "targets": targets}))
    try:
        path.write_text(original.replace(mutation["find"], mutation["replace"]))
        built = copy.build(targets)
        if built.code != 0:
            errors = re.findall(r"error: .*", built.text)
            return BROKEN, "it does not compile: " + (errors[0] if errors else built.text[-300:])
        return judge(copy.test(mutation))
    finally:
        copy.restore(path, original)
        copy.stale.update(targets)


def check_unchanged(copy, mutations):
    """Checks that the nearest tests pass on the unchanged copy; otherwise a failure would mean
    nothing."""
    print(f"building what {len(mutations)} changes need ...", flush=True)
    built = copy.build({target for mutation in mutations for target in targets_of(mutation)} |
                       {mutation["program"] for mutation in mutations if "program" in mutation})
    if built.code != 0:
        sys.exit("error: the copy does not build:\n" + built.text[-3000:])
    filters = {}
    alone = {(m["ctest"], *m["arguments"]): m for m in mutations if "arguments" in m}
    for (name, *arguments), mutation in alone.items():
        outcome = copy.test(mutation, limit=3600)
        if outcome.code != 0:
            sys.exit(f"error: {name} {' '.join(arguments)} does not pass without any change:\n{outcome.text[-3000:]}")
    for mutation in mutations:
        if "arguments" in mutation:
            continue
        key = "ctest" if "ctest" in mutation else mutation["program"]
        filters.setdefault(key, []).append(mutation.get("ctest") or mutation["filter"])
    for program, parts in filters.items():
        test = {"ctest": "|".join(dict.fromkeys(parts))} if program == "ctest" else \
            {"program": program, "filter": ":".join(dict.fromkeys(parts))}
        outcome = copy.test(test, limit=3600)
        if outcome.code != 0:
            sys.exit(f"error: {program} does not pass without any change:\n" + outcome.text[-3000:])
        print(f"{program} passes without a change in {outcome.seconds:.0f} s", flush=True)


def is_reusable(entry, mutation, commit, copy, accepts_older):
    if entry["digest"] != digest(mutation) or entry["result"] == BROKEN:
        return False
    if entry["commit"] == commit:
        return True
    same = ["git", "diff", "--quiet", entry["commit"], "--", mutation["file"]]
    return accepts_older and entry["result"] == KILLED and subprocess.run(same, cwd=copy.folder).returncode == 0


def read_log(path):
    if not path or not path.exists():
        return {}
    entries = (json.loads(line) for line in path.read_text().splitlines())
    return {entry["name"]: entry for entry in entries}  # the last entry of a name counts


def escaped(text):
    return text.replace("|", "\\|").replace("\n", " ")


def table(mutations, results):
    """Markdown: one row for each change, and the share."""
    done = [results[m["name"]] for m in mutations if m["name"] in results]
    killed = sum(entry["result"] == KILLED for entry in done)
    lines = ["| room | change | what would go wrong | result |", "|---|---|---|---|"]
    for mutation in mutations:
        entry = results.get(mutation["name"])
        if not entry:
            result = "not run"
        elif entry["result"] == KILLED:
            result = "killed by " + entry["by"]
        else:
            result = f"**{entry['result'].upper()}**" + (f": {entry['by']}" if entry["by"] else "")
        cells = [mutation["room"], f"`{mutation['name']}`", mutation["why"], result]
        lines.append("| " + " | ".join(map(escaped, cells)) + " |")
    share = killed / len(done) if done else 0
    lines += ["", f"{killed} of {len(done)} changes were killed: {100 * share:.1f} %."]
    return "\n".join(lines) + "\n", share


def write_document(path, text, commit):
    """Replaces the table between the two marks of the document."""
    begin, end = "<!-- begin of what tests/mutations/run.py writes -->", "<!-- end -->"
    document = path.read_text()
    if begin not in document or end not in document:
        sys.exit(f"error: {path} lacks the marks '{begin}' and '{end}' between which the table goes")
    head, rest = document.split(begin, 1)
    tail = rest.split(end, 1)[1]
    path.write_text(f"{head}{begin}\n\nMeasured at {commit[:12]}.\n\n{text}\n{end}{tail}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copy", type=pathlib.Path, help="folder of the copy that is changed; created if missing")
    parser.add_argument("--in-place", action="store_true", help="the copy may be the tree of this script")
    parser.add_argument("--only", default="*", help="names that match this pattern (* means any text; commas separate)")
    parser.add_argument("--list", action="store_true", help="show the changes and whether they apply to this tree")
    parser.add_argument("--log", type=pathlib.Path, default=pathlib.Path("mutations.jsonl"), help="file of the results")
    parser.add_argument("--resume", type=pathlib.Path, metavar="LOG", help="continue this log")
    parser.add_argument("--accept-older", action="store_true",
                        help="with --resume: also keep results of another commit if the file is the same")
    parser.add_argument("--least", type=float, default=0.95, help="least share of killed changes")
    parser.add_argument("--limit", type=float, default=120, help="seconds for the tests of one change")
    parser.add_argument("--jobs", type=int, default=2, help="of the build")
    parser.add_argument("--skip-check", action="store_true", help="do not run the tests without a change first")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE", help="put the table into this document")
    return parser.parse_args()


def show(mutations):
    broken = 0
    for mutation in mutations:
        path = SOURCE / mutation["file"]
        count = path.read_text().count(mutation["find"]) if path.exists() else 0
        broken += count != 1
        print(f"{mutation['name']:<55} {mutation['file']}" + ("" if count == 1 else f"  ({count} times)"))
    print(f"{len(mutations)} changes" + (f", {broken} do not apply" if broken else ""))
    return 1 if broken else 0


def not_known(copy, mutations, results, commit, accepts_older):
    """The changes without a result in the log; drops stale entries from `results`."""
    left = []
    for mutation in mutations:
        entry = results.get(mutation["name"])
        if not entry or not is_reusable(entry, mutation, commit, copy, accepts_older):
            results.pop(mutation["name"], None)
            left.append(mutation)
    print(f"{len(mutations) - len(left)} of {len(mutations)} are known from the log", flush=True)
    return left


def main():
    arguments = parse_arguments()
    patterns = arguments.only.split(",")
    mutations = [mutation for mutation in read_mutations(HERE / "mutations.toml")
                 if any(fnmatch.fnmatch(mutation["name"], pattern) for pattern in patterns)]
    if not mutations:
        sys.exit(f"error: no change has a name like '{arguments.only}'; see --list")
    if arguments.list:
        return show(mutations)
    if not arguments.copy:
        sys.exit("error: --copy is missing: the folder whose files are changed; never the tree you work in")
    folder = arguments.copy.resolve()
    if folder == SOURCE and not arguments.in_place:
        sys.exit(f"error: {folder} is the tree of this script; name another folder, or set --in-place")
    copy = Copy(folder, arguments.jobs, arguments.limit)
    copy.prepare()
    log = arguments.resume or arguments.log
    results = read_log(arguments.resume)
    commit = copy.commit()
    left = not_known(copy, mutations, results, commit, arguments.accept_older)
    if left and not arguments.skip_check:
        check_unchanged(copy, left)
    for number, mutation in enumerate(left, 1):
        begin = time.monotonic()
        result, by = apply(copy, mutation)
        seconds = round(time.monotonic() - begin, 1)
        entry = {"name": mutation["name"], "commit": commit, "digest": digest(mutation), "result": result, "by": by,
                 "seconds": seconds}
        results[mutation["name"]] = entry
        with log.open("a") as out:
            out.write(json.dumps(entry) + "\n")
        print(f"[{number}/{len(left)}] {result:<9} {mutation['name']} ({seconds} s) {by}", flush=True)
    if copy.stale:
        copy.build(set())
    text, share = table(mutations, results)
    print("\n" + text)
    if arguments.write:
        write_document(arguments.write, text, commit)
    is_broken = any(entry["result"] == BROKEN for entry in results.values())
    return 0 if share >= arguments.least and not is_broken else 1


if __name__ == "__main__":
    sys.exit(main())
