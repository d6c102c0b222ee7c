"""Titan's kernels under the tools of compute-sanitizer: a stage of run_all.py, and a part of its
diagnosis."""

import dataclasses

from running import check, figure, row

FOUND = 9  # exit code of a tool that found an error


@dataclasses.dataclass(frozen=True)
class Tool:
    modes: tuple  # of device_probe
    # every kernel of Titan is an instance of launch.cuh's kernel_entry
    flags: tuple = ("--kernel-name", "kns=kernel_entry")
    only: tuple = ()  # flags of device_probe
    environment: dict = dataclasses.field(default_factory=dict)


TOOLS = {
    # a separate allocation for each tensor: otherwise an access beyond its end would hit another block of the
    # caching allocator
    "memcheck": Tool(("ops", "float8"), environment={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
    "synccheck": Tool(("ops", "float8")),
    # racecheck of CUDA 13.0 ends with an internal error if kernels are selected by name. Without a selection it checks
    # LibTorch's kernels too, which takes long. So it runs only a few operations whose threads share memory.
    "racecheck": Tool(("ops",), flags=(), only=("--only", "rms_norm")),
}


def probe(c, mode):
    return [c.programs / "device_probe", "--plugins", c.plugins, mode, c.device, *([1] if mode == "ops" else []), "--small"]


def run_tool(c, name, mode, timeout=None):
    """Returns (run, its summary). Writes the tool's output to a file of the results."""
    tool = TOOLS[name]
    run = c.run("/usr/bin/env", "compute-sanitizer", "--tool", name, "--error-exitcode", FOUND, "--print-limit", 20, *tool.flags,
                *probe(c, mode), *tool.only, timeout=timeout, **tool.environment)
    (c.out / f"sanitizer_{name}_{mode}.txt").write_text((run.stdout + run.stderr)[-200000:])
    lines = [line.strip("= ") for line in run.stdout.splitlines() if line.startswith("=====")]
    return run, [line for line in lines if line.startswith("Invalid") or "Error" in line or "SUMMARY" in line][:5]


def sanitizer(c):
    if c.is_small:
        run = c.run(*probe(c, "ops"), "--only", "rms_norm")
        check("device_probe ends well without a tool", run.code == 0, run.code, 0, None if run.code == 0 else run.why())
        return
    jobs = {(name, mode): lambda n=name, m=mode: run_tool(c, n, m) for name, tool in TOOLS.items() for mode in tool.modes}
    for (tool, mode), (run, summary) in c.side_by_side(jobs, workers=3).items():
        figure(f"{tool}, {mode} (s)", run.seconds)
        row("sanitizer", tool=tool, what=mode, code=run.code, says=" / ".join(summary))
        is_clean = run.code == 0 and any("SUMMARY: 0 " in line for line in summary)
        check(f"{tool} finds nothing in the kernels of {mode}", is_clean, run.code, 0, None if is_clean else " / ".join(summary) or run.why())
