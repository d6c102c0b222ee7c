"""Shared by the referee scripts of models and optimizers: running a probe, raw files, a table of figures and limits."""

import argparse
import json
import pathlib
import subprocess

import numpy as np
import torch


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--probe", required=True, help="the llama_probe program")
    parser.add_argument("--plugins", required=True, help="folder of the plugins")
    args = parser.parse_args()
    args.jobs = Jobs(args.probe, args.plugins)
    return args


class Jobs:
    """The running probe, one process for all jobs, because starting LibTorch takes longer than a small job."""

    def __init__(self, probe, plugins):
        self.command = [probe, "--plugins", plugins]
        self.process = None

    def run(self, job, folder):
        """Runs the job of the file `job`; the results are in `folder`."""
        if not self.process:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(f"{job}\t{folder}\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "done\n":
            raise SystemExit(f"{self.command[0]} ended with {self.process.wait()} at {job}: {job.read_text()}")


def write_tensor(path, tensor):
    """Raw little-endian: int64 for integers, fp32 for everything else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = "<i8" if not tensor.is_floating_point() else "<f4"
    path.write_bytes(np.ascontiguousarray(tensor.detach().numpy()).astype(kind).tobytes())
    return str(path)


def read_tensor(path, shape):
    return torch.from_numpy(np.fromfile(path, dtype="<f4").astype(np.float32)).reshape(list(shape))


def read_integers(path, shape):
    return torch.from_numpy(np.fromfile(path, dtype="<i8")).reshape(list(shape))


class Run:
    """One run of the probe and its results."""

    def __init__(self, args, job, folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "job.json").write_text(json.dumps(job))
        args.jobs.run(folder / "job.json", folder)
        self.folder = pathlib.Path(folder)
        self.result = json.loads((folder / "result.json").read_text())
        self.shapes = {p["name"]: p["shape"] for p in self.result["parameters"]}
        # several rules of one parameter are alternatives, the preferred name first
        self.their_name = {rule["ours"]: rule["theirs"] for rule in reversed(self.result["name_rules"])}

    def tensors(self, kind, shapes=None):
        """Tensors by name of one folder: "parameters", "gradients" or "final". `shapes`: by name, for the requested
        tensors; default: all."""
        return {name: read_tensor(self.folder / kind / f"{name}.bin", shape) for name, shape in (shapes or self.shapes).items()}

    def logits(self, rows, seq_len, vocab):
        return read_tensor(self.folder / "logits.bin", (rows, seq_len, vocab))


def max_abs(a, b):
    return (a.double() - b.double()).abs().max().item()


def relative(a, b):
    """‖a − b‖ / ‖b‖"""
    a, b = a.double(), b.double()
    return ((a - b).norm() / b.norm()).item()


class Report:
    """Figures with their limits. A figure that is not finite exceeds every limit."""

    def __init__(self):
        self.rows = []

    def at_most(self, what, figure, limit):
        self.rows.append((what, figure, "<=", limit, figure <= limit))

    def at_least(self, what, figure, limit):
        self.rows.append((what, figure, ">=", limit, figure >= limit))

    def equal(self, what, found, expected):
        if found == expected:
            self.rows.append((what, 0.0, "<=", 0.0, True))
        else:
            print(f"{what}:\n  found    {found}\n  expected {expected}")
            self.rows.append((what, 1.0, "<=", 0.0, False))

    def finish(self):
        """Prints all figures; ends the program with 1 when one exceeds its limit."""
        assert self.rows, "nothing was compared"
        width = max(len(row[0]) for row in self.rows)
        for what, figure, relation, limit, is_kept in self.rows:
            print(f"{what:{width}}  {figure:10.3e}  {relation} {limit:7.1e}  {'' if is_kept else 'EXCEEDED'}".rstrip())
        exceeded = sum(not row[-1] for row in self.rows)
        print(f"{len(self.rows)} figures, {exceeded} exceed their limit")
        raise SystemExit(1 if exceeded else 0)
