"""Speed and memory of training under two versions of LibTorch, in pairs of runs.

    tests/other_torch/paired_speed.py ONE_TREE ANOTHER_TREE [--pairs N] [--write docs/internals/libtorch.md]

Both trees are built, each with its own LibTorch. The jobs are the four of docs/results/performance.md; `titan bench`
runs each of them alternately with both programs and measures tokens per second and the peak of memory. The table holds
ratios, one tree over the other: the median of the pairs and the 95 % interval of that median. Half an hour on two idle
cores.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from torch_free_plugins import torch_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "benchmarks"))

FIGURES = {"tokens_per_second": "speed", "peak_bytes": "peak of memory"}


def ratios(programs, root, flags, pairs, threads):
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        path = pathlib.Path(folder) / "bench.json"
        command = [programs[0], "bench", *map(str, flags), "--no-gemm", "--vs-program", programs[1], "--pairs", str(pairs), "--warmup", "1",
                   "--steps", "3", "--json", path]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False,
                              env={**os.environ, "OMP_NUM_THREADS": str(threads)})
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
        return json.loads(path.read_text())["pairs"]["ratios"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs=2, type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", type=pathlib.Path, help="fill in the table of this page")
    arguments = parser.parse_args()
    programs = [tree.resolve() / "build/release/bin/titan" for tree in arguments.trees]
    os.environ.setdefault("TITAN_SOURCE_DIR", str(arguments.trees[0].resolve()))
    os.environ.setdefault("TITAN_PROGRAM", str(programs[0]))
    from op_profile import JOBS, RECIPE, write
    recipe = RECIPE[:RECIPE.index("--metrics.log_freq")]  # titan bench sets how a run is logged
    versions = [torch_of(program) for program in programs]
    rows = [f"| job | {' | '.join(f'{text}, {versions[0]} over {versions[1]}' for text in FIGURES.values())} |", "|---|---|---|"]
    for name, (flags, _) in JOBS.items():
        found = ratios(programs, arguments.trees[0], [*recipe, *flags], arguments.pairs, arguments.threads)
        cells = [f"{found[figure]['median']:.3f} ({found[figure]['low']:.3f} to {found[figure]['high']:.3f})" for figure in FIGURES]
        rows.append(f"| {name} | {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    if arguments.write:
        write(arguments.write, "speed", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
