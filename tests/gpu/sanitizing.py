"""Our kernels under the tools of compute-sanitizer: a stage of run_all.py, and a part of its diagnosis."""

from running import check, figure, row

TOOLS = {"memcheck": ("ops", "float8"), "synccheck": ("ops", "float8"), "racecheck": ("ops",)}
OURS = ["--kernel-name", "kns=kernel_entry"]  # every kernel of ours is an instance of launch.cuh's kernel_entry
# racecheck of CUDA 13.0 ends with an internal error where kernels are selected by name. Without that it looks at LibTorch's kernels
# too, which takes long, so it gets few operations: those whose threads share memory.
FLAGS = {"memcheck": OURS, "synccheck": OURS, "racecheck": []}
MORE = {"racecheck": ["--only", "rms_norm"]}
# For memcheck an allocation for each tensor: an access beyond its end would meet another block of the caching allocator.
ENVIRONMENT = {"memcheck": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}}
FOUND = 9  # exit code of a tool that found something


def probe(c, mode):
    return [c.programs / "device_probe", "--plugins", c.plugins, mode, c.device, *([1] if mode == "ops" else []), "--small"]


def run_tool(c, tool, mode):
    """(run, its summary); the tool's output is kept in a file of the results."""
    run = c.run("/usr/bin/env", "compute-sanitizer", "--tool", tool, "--error-exitcode", FOUND, "--print-limit", 20, *FLAGS[tool],
                *probe(c, mode), *MORE.get(tool, []), **ENVIRONMENT.get(tool, {}))
    (c.out / f"sanitizer_{tool}_{mode}.txt").write_text((run.stdout + run.stderr)[-200000:])
    lines = [line.strip("= ") for line in run.stdout.splitlines() if line.startswith("=====")]
    return run, [line for line in lines if line.startswith("Invalid") or "Error" in line or "SUMMARY" in line][:5]


def sanitizer(c):
    if c.is_small:
        run = c.run(*probe(c, "ops"), "--only", "rms_norm")
        check("device_probe ends well without a tool", run.code == 0, run.code, 0, None if run.code == 0 else run.why())
        return
    jobs = {(tool, mode): lambda t=tool, m=mode: run_tool(c, t, m) for tool, modes in TOOLS.items() for mode in modes}
    for (tool, mode), (run, summary) in c.side_by_side(jobs, workers=3).items():
        figure(f"{tool}, {mode} (s)", run.seconds)
        row("sanitizer", tool=tool, what=mode, code=run.code, says=" / ".join(summary))
        is_clean = run.code == 0 and any("SUMMARY: 0 " in line for line in summary)
        check(f"{tool} finds nothing in the kernels of {mode}", is_clean, run.code, 0, None if is_clean else " / ".join(summary) or run.why())
