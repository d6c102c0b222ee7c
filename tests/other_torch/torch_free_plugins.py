"""Plugins without torch, built once, in programs of two versions of LibTorch.

    tests/other_torch/torch_free_plugins.py ONE_TREE ANOTHER_TREE

Both trees are built, each with its own LibTorch. Each program trains with its own plugins, and with the other tree's
plugins that do not use torch: losses must be bitwise equal. A plugin that uses torch must be refused with an error that
names the version it was built for. Standard library only; a minute.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LOSS = ("loss_metrics/global_avg_loss", "grad_norm")
PLUGINS = "lib/titan/plugins"
JOB = ["train", "--job.config_file", "train_configs/debug_model.toml", "--device.name", "cpu", "--training.steps", "3",
       "--training.seq_len", "64", "--metrics.log_freq", "1", "--metrics.loggers", "jsonl,tensorboard"]


def torch_of(program):
    """The version of LibTorch that a program was built with."""
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return text.split("LibTorch ")[1].split(",")[0]


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.build = self.root / "build/release"
        self.torch = torch_of(self.build / "bin/titan")
        files = sorted((self.build / PLUGINS).glob("*.plugin.so"))
        self.torch_free = [path for path in files if b"\0torch=none\0" in path.read_bytes()]
        self.others = [path for path in files if path not in self.torch_free]

    def program(self, folder, replaced=()):
        """A copy of the program with its plugins, some of them replaced. Libraries are found in their build
        folders."""
        shutil.copytree(self.build / "bin", folder / "bin", ignore=lambda _, names: [n for n in names if not n.startswith("titan")
                                                                                     or "tests" in n])
        (folder / PLUGINS).mkdir(parents=True)
        for path in [*self.torch_free, *self.others]:
            (folder / PLUGINS / path.name).symlink_to(path)
        for path in replaced:
            (folder / PLUGINS / path.name).unlink()
            shutil.copy(path, folder / PLUGINS)
        return folder / "bin/titan"


def train(program, tree, out):
    variables = os.environ | {"VIRTUAL_ENV": str(tree.root / ".venv")}  # a copied program looks for LibTorch as an installation does
    done = subprocess.run([program, *JOB, "--job.dump_folder", out], cwd=tree.root, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [tuple(line[tag] for tag in LOSS) for line in lines if LOSS[0] in line]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    trees = [Tree(name) for name in sys.argv[1:]]
    if trees[0].torch == trees[1].torch:
        sys.exit(f"both trees are built with LibTorch {trees[0].torch}")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="titan_other_torch_") as name:
        work = pathlib.Path(name)
        for here, there in (trees, trees[::-1]):
            own = train(here.build / "bin/titan", here, work / f"own {here.torch}")
            mixed = train(here.program(work / here.torch, there.torch_free), here, work / f"mixed {here.torch}")
            is_same = own == mixed and isinstance(own, list) and len(own) == 3
            wrong += not is_same
            print(f"{'ok' if is_same else 'WRONG'}: torch {here.torch} with {len(there.torch_free)} torch-free plugins built for "
                  f"{there.torch}: {mixed if not is_same else 'the same losses'}", flush=True)
            adamw = next(path for path in there.others if path.name == "adamw.plugin.so")
            refused = train(here.program(work / f"torch {here.torch}", [adamw]), here, work / f"refused {here.torch}")
            said = f"torch {there.torch} {here.torch} must be equal"
            is_refused = isinstance(refused, str) and said in " ".join(refused.split())
            wrong += not is_refused
            print(f"{'ok' if is_refused else 'WRONG'}: torch {here.torch} refuses {adamw.name} of {there.torch}: "
                  f"{said if is_refused else refused}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
