"""Measures what a new plugin costs its author: CPU seconds of compiling the project of `titan new-plugin`, for each kind, and the time from
the command to the end of the recipe's 10 steps.

  .venv/bin/python tests/benchmarks/plugin_scaffolds.py PREFIX [--kinds optimizer,loss] [--run optimizer] [--text FOLDER]

PREFIX: an installation of Titan. "plugin" is the plugin alone, "project" adds its unit test. Without a compiler cache, user and system
time, linking included. Limits: 10 s for a project, 25 s if its source includes autograd. The exit code is 1 if one is exceeded.
--run: this kind's whole way as its author goes it: new-plugin, cmake, build with -j2, ctest, 10 steps; wall and CPU seconds.
--text: a folder with tests/assets, for an installation without the bundled text.
"""

import argparse
import os
import pathlib
import resource
import shlex
import subprocess
import sys
import tempfile
import time

LIMIT, AUTOGRAD_LIMIT = 10, 25


class Failed(Exception):
    pass


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(*command, cwd=None):
    """CPU seconds of a command, with those of its children."""
    before = cpu_seconds()
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          env={**os.environ, "CCACHE_DISABLE": "1"})
    if done.returncode != 0:
        raise Failed(f"{shlex.join(map(str, command))} gave {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return cpu_seconds() - before, done.stdout


def generate(prefix, kind, folder):
    run(prefix / "bin/titan", "new-plugin", kind, f"acme/new_{kind}", "--directory", folder)


def configure(prefix, folder):
    run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DTitan_ROOT={prefix}")


def kinds_of(prefix):
    """The kinds that `titan new-plugin` lists."""
    _, listed = run(prefix / "bin/titan", "new-plugin")
    return [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]


def measure(prefix, kind, folder):
    """(plugin, project): CPU seconds."""
    generate(prefix, kind, folder)
    configure(prefix, folder)
    plugin, _ = run("cmake", "--build", folder / "build", "-j", 2, "--target", f"acme_new_{kind}.plugin")
    rest, _ = run("cmake", "--build", folder / "build", "-j", 2)
    return plugin, plugin + rest


def whole_way(prefix, kind, folder, text):
    """(wall, CPU) seconds from the command to the end of the recipe."""
    began, used = time.monotonic(), cpu_seconds()
    generate(prefix, kind, folder)
    configure(prefix, folder)
    run("cmake", "--build", folder / "build", "-j", 2)
    _, flags = run(prefix / "bin/titan", "check", "--help")
    run("ctest", "--test-dir", folder / "build", *([] if "--conformance" in flags else ["-E", "conformance"]))
    if text:
        (folder / "tests").symlink_to(text.resolve() / "tests")
    recipe = (folder / "train.toml").read_text().splitlines()[1].removeprefix("#").split()
    run(prefix / "bin/titan", *recipe[1:], cwd=folder)
    return time.monotonic() - began, cpu_seconds() - used


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("--kinds", help="comma-separated; default: all")
    parser.add_argument("--run", metavar="KIND", help="measure this kind's whole way, and nothing else")
    parser.add_argument("--text", type=pathlib.Path)
    options = parser.parse_args()
    prefix = options.prefix.resolve()
    try:
        with tempfile.TemporaryDirectory(prefix="titan_scaffolds_") as temporary:
            folder = pathlib.Path(temporary)
            if options.run:
                wall, used = whole_way(prefix, options.run, folder / options.run, options.text)
                print(f"{options.run}: from new-plugin to the end of 10 steps {wall:.1f} s, {used:.1f} CPU s; load {os.getloadavg()[0]:.1f}")
                return 0
            print("| kind | plugin, CPU s | project, CPU s | limit |\n|---|---:|---:|---:|")
            exceeded = False
            for kind in options.kinds.split(",") if options.kinds else kinds_of(prefix):
                plugin, project = measure(prefix, kind, folder / kind)
                limit = AUTOGRAD_LIMIT if "torch/csrc/autograd" in (folder / kind / f"new_{kind}.cpp").read_text() else LIMIT
                exceeded = exceeded or project >= limit
                print(f"| {kind} | {plugin:.1f} | {project:.1f} | {limit} |", flush=True)
            return int(exceeded)
    except Failed as failure:
        sys.exit(f"plugin_scaffolds.py: {failure}")


if __name__ == "__main__":
    sys.exit(main())
