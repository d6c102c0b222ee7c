#!/usr/bin/env python3
"""The thorough tests that .ci/run adds to the everyday suite: those of the folders that changed lately.

    tools/touched_tests.py              names, a line each; "all" alone where everything is to be run
    tools/touched_tests.py --why        with the folder that calls for each

Lately: since the newest commit that is older than a day, and what is not committed. tests/rooms.toml says which folder
calls for which tests; a folder that it does not name calls for all. Without such a commit, in a young or a shallow clone,
all are run.
"""

import argparse
import fnmatch
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
DAY = 24 * 3600


def git(root, *words):
    return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=True).stdout


def base_commit(root, now):
    """The newest commit that is older than a day; None where there is none."""
    for line in git(root, "log", "--first-parent", "--format=%H %ct").splitlines():
        commit, seconds = line.split()
        if now - int(seconds) > DAY:
            return commit
    return None


def touched(root, base):
    committed = git(root, "diff", "--name-only", "--no-renames", base, "HEAD").splitlines()
    changed = [line[3:] for line in git(root, "status", "--porcelain", "--no-renames", "--untracked-files=all").splitlines()]
    return sorted(set(committed + changed))


def row_of(file, rooms):
    """The row of the deepest folder that is named; None: no row."""
    found = [folder for folder in rooms if file == folder or file.startswith(folder + "/")]
    return max(found, key=len) if found else None


def chosen(files, rooms, thorough):
    """{test: the folder or file that calls for it}"""
    result = {}
    for file in files:
        row = row_of(file, rooms)
        own = pathlib.PurePath(file).name.removesuffix("_test.py").removesuffix(".py")
        for test in thorough:
            is_own = file.startswith("tests/") and test.split(".", 1)[1] == own
            if is_own or (row is None and not file.startswith("tests/end_to_end/")) or any(
                    fnmatch.fnmatchcase(test, pattern) for pattern in rooms.get(row, [])):
                result.setdefault(test, row or file)
        if file.startswith("tests/end_to_end/") and not file.endswith("_test.py"):  # what several of them share
            for test in thorough:
                if test.startswith("end_to_end."):
                    result.setdefault(test, file)
    return result


def thorough_tests(root):
    return [line.split()[0] for line in (root / "tests/thorough.txt").read_text().splitlines() if line and not line.startswith("#")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--why", action="store_true")
    arguments = parser.parse_args()
    try:
        import tomllib
    except ImportError:  # Python 3.10
        tomllib = None
    base = base_commit(ROOT, time.time())
    if base is None or tomllib is None:
        print("all")
        return
    tests = thorough_tests(ROOT)
    found = chosen(touched(ROOT, base), tomllib.loads((ROOT / "tests/rooms.toml").read_text()), tests)
    if set(found) == set(tests) and not arguments.why:
        print("all")
        return
    for test, why in sorted(found.items()):
        print(f"{test}  {why}" if arguments.why else test)


if __name__ == "__main__":
    main()
