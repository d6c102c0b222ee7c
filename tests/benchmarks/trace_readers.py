#!/usr/bin/env python3
"""Checks traces of a run of four ranks with readers of PyTorch traces: HolisticTraceAnalysis and TensorBoard's torch plugin.

Both are large, so they are installed into a separate folder (build/trace_readers) and are not part of the test set.

    python3 tests/benchmarks/trace_readers.py      # installs what is missing, runs and judges; exit code 1 when one disagrees

Uses TITAN_SOURCE_DIR and TITAN_PROGRAM if they are set.
"""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TITAN = os.environ.get("TITAN_PROGRAM", str(ROOT / "build/release/bin/titan"))
HOME = ROOT / "build/trace_readers"
PACKAGES = ["HolisticTraceAnalysis==0.5.0", "torch-tb-profiler==0.4.3", "tensorboard==2.21.0"]
RANKS, STEPS = 4, ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]

HTA = """
import json, logging, sys, warnings
warnings.filterwarnings("ignore")
import hta
logging.disable(logging.INFO)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_dir=sys.argv[1])
names = analysis.t.symbol_table.get_sym_table()
found = {}
for rank, events in analysis.t.get_all_traces().items():
    column = [names[i] for i in events["name"]]
    found[int(rank)] = {"steps": [n for n in column if n.startswith("ProfilerStep")], "ops": sum(n.startswith("aten::") for n in column),
                        "collectives": column.count("record_param_comms"), "layers": len({n for n in column if n.startswith("layers.")})}
print(json.dumps({"ranks": found, "steps": [int(step) for step in analysis.get_profiler_steps()]}))
"""

TENSORBOARD = """
import json, sys, warnings
warnings.filterwarnings("ignore")
from torch_tb_profiler.io import Cache
from torch_tb_profiler.profiler import RunLoader

def main():
    run = RunLoader("run", sys.argv[1], Cache()).load()
    found = {}
    for profile in run.profiles.values():
        if profile.worker == "All":
            continue
        rows = profile.overview["steps"]["rows"]
        columns = [column.get("name") for column in profile.overview["steps"]["columns"]]
        found[profile.worker] = {row[0]: {name: row[i] for i, name in enumerate(columns) if name and i} for row in rows}
    print(json.dumps(found))

if __name__ == "__main__":
    main()
"""


def install():
    python = HOME / "bin/python"
    if not (HOME / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        (HOME / "installed").write_text("\n".join(PACKAGES))
    return python


def ask(python, script, folder, work):
    path = work / "ask.py"
    path.write_text(script)
    done = subprocess.run([python, path, folder], cwd=work, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the reader failed:\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def run(out):
    subprocess.run([TITAN, "launch", "--nproc", str(RANKS), "--", "train", "--job.config_file", "train_configs/debug_model.toml",
                    "--training.seq_len", "128", "--training.local_batch_size", "4", "--training.steps", "5", "--job.dump_folder",
                    out, "--profiling.enable_profiling", "--profiling.profile_freq", "5", "--profiling.profiler_warmup", "1",
                    "--profiling.profiler_active", "3", "--parallelism.data_parallel_shard_degree", "2",
                    "--parallelism.pipeline_parallel_degree", "2", "--parallelism.pipeline_parallel_schedule", "1F1B"],
                   cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, capture_output=True, timeout=600)
    return out / "profile_traces/iteration_5"


def expect(condition, what):
    print(("ok    " if condition else "WRONG ") + what, flush=True)
    return bool(condition)


def judge(python, work):
    folder = run(work / "out")
    said = ask(python, HTA, folder, work)
    ranks = said["ranks"]
    good = [expect(sorted(ranks) == [str(rank) for rank in range(RANKS)], f"HTA distinguishes the ranks: {sorted(ranks)}")]
    for rank, found in sorted(ranks.items()):  # the reader leaves out the last step of a recording
        good.append(expect(found["steps"] == STEPS[:-1] and found["layers"] >= 15 and found["collectives"] > 0 and found["ops"] > 1000,
                           f"HTA, rank {rank}: {found}"))
    files = work / "tensorboard"
    files.mkdir()
    for rank in range(RANKS):
        shutil.copy(folder / f"rank{rank}_trace.json.gz", files / f"host_{rank}.pt.trace.json.gz")
    said = ask(python, TENSORBOARD, files, work)
    good.append(expect(len(said) == RANKS, f"TensorBoard's plugin knows {len(said)} workers"))
    for worker, steps in sorted(said.items()):
        rank = worker.split("_")[1]
        events = json.loads(gzip.decompress((folder / f"rank{rank}_trace.json.gz").read_bytes()))["traceEvents"]
        for step, parts in sorted(steps.items()):
            recorded = next(e["dur"] for e in events if e["name"] == f"ProfilerStep#{step}")
            total = sum(value for name, value in parts.items() if isinstance(value, (int, float)))
            busy = (total - parts.get("Other", 0)) / recorded
            good.append(expect(abs(total / recorded - 1) < 0.02 and busy > 0.9,
                               f"{worker}, step {step}: parts are {100 * total / recorded:.2f} % of the step, {100 * busy:.1f} % named"))
    return all(good)


def main():
    python = install()
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        return 0 if judge(python, pathlib.Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
