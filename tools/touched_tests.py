#!/usr/bin/env python3
"""Lists the thorough tests of the folders that changed lately. .ci/run and ./run_tests.sh --touched add them to the everyday suite.

    tools/touched_tests.py              names, one a line; only the word "all" if all thorough tests are needed
    tools/touched_tests.py --why        each name with a changed file that requires it

Lately means: since the newest commit that is older than a day, uncommitted changes included. tests/rooms.toml maps folders to
tests; a folder without a row requires all of them. Without a commit that old (a new repository or a shallow clone), all tests
are required.
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
    """The newest commit that is older than a day; None if all are younger."""
    return git(root, "rev-list", "-1", "--first-parent", f"--min-age={int(now - DAY)}", "HEAD").strip() or None


def touched(root, base):
    committed = git(root, "diff", "--name-only", "--no-renames", base, "HEAD").splitlines()
    changed = [line[3:] for line in git(root, "status", "--porcelain", "--no-renames", "--untracked-files=all").splitlines()]
    return sorted(set(committed + changed))


def patterns_of(file, rooms):
    """Patterns of the tests that a change of this file requires; "*" matches any text."""
    path = pathlib.PurePath(file)
    if file.startswith("tests/end_to_end/"):
        # a test requires itself; a module that several tests share requires all of them
        name = f"end_to_end.{path.stem.removesuffix('_test')}"
        return [name, f"{name}.thorough"] if path.stem.endswith("_test") else ["end_to_end.*"]
    for folder in (path, *path.parents):  # the deepest one that has a row
        if str(folder) in rooms:
            return rooms[str(folder)]
    return ["*"]


def chosen(files, rooms, thorough):
    """{test: the first file that requires it}"""
    result = {}
    for file in files:
        for pattern in patterns_of(file, rooms):
            for test in fnmatch.filter(thorough, pattern):
                result.setdefault(test, file)
    return result


def thorough_tests(root):
    return [line.split()[0] for line in (root / "tests/thorough.txt").read_text().splitlines() if line and not line.startswith("#")]


def tests_of_changes(root):
    """{thorough test: the first changed file that requires it}; None if all are required."""
    try:
        import tomllib
    except ImportError:  # Python 3.10
        return None
    base = base_commit(root, time.time())
    if base is None:
        return None
    return chosen(touched(root, base), tomllib.loads((root / "tests/rooms.toml").read_text()), thorough_tests(root))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--why", action="store_true")
    arguments = parser.parse_args()
    found = tests_of_changes(ROOT)
    if found is None or (set(found) == set(thorough_tests(ROOT)) and not arguments.why):
        print("all")
        return
    for test, why in sorted(found.items()):
        print(f"{test}  {why}" if arguments.why else test)


if __name__ == "__main__":
    main()
