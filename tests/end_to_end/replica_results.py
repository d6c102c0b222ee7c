"""Writes docs/results/fault_tolerance.md from the results of replicas_drill.py."""

import json

PAGE = """# Replica groups under faults

Three replica groups train while one fault after the other strikes them: a group is killed and started again (kill), stopped by
SIGSTOP for 0.3, 1.5 or 4 s (stop), or cut off from the network by nftables for as long (cut). A seed draws the group and the
moment. Every result below is of a run that passed these checks:

- Each loss equals that of one undisturbed group within 1e-9 (float64), and every group trained the tokens of that run in each step.
- The weights of all groups have equal bits after each step. A step that a lost group alone committed is not part of the run.
- No process and no temporary file is left.

```
.venv/bin/python -m pip install --no-deps --requirement requirements-torchft.txt     # torchft's lighthouse
tools/long_checks.sh replicas                                                        # all of it; writes this page
tests/end_to_end/replicas_drill.py --kills 20 --seed 1                               # a part; see --help
```

The groups are tiny, so that hundreds of faults fit into minutes. They save a checkpoint every {interval} steps and use the settings
heartbeat_timeout = {heartbeat} s (of the lighthouse) and fault_tolerance.process_group_timeout_ms = {collective}.

*Standstill*: the longest time without a commit of the other groups, from the fault until all groups train together again. After a kill it
should be two steps and the heartbeat timeout. After a stop or a cut the timeout of the collective comes first. While two groups cannot reach each other but both reach the lighthouse
(cut from a group), none trains: the lighthouse lists both. *Lost steps*: attempts of the other groups that did not count; at most one per
fault is the goal.

{tables}
"""
WHERE = {False: "processes on one host, which communicate through shared memory", True: "network namespaces, which communicate over gloo"}


def goal(kind, result, heartbeat_ms, collective_ms):
    wait = heartbeat_ms + (0 if kind == "kill" else collective_ms)
    return wait / 1000 + 2 * result["step_ms"] / 1000


def table(result, heartbeat_ms, collective_ms):
    ranks = "one rank each" if result["ranks"] == 1 else f"{result['ranks']} ranks each under FSDP"
    yield (f"## Groups in {WHERE[result['network']]}; {ranks}\n\nSeed {result['seed']}: {result['steps']} steps with a median of {result['step_ms']:.0f} ms in "
           f"{result['seconds']:.0f} s. The largest difference of a loss is {result['worst']:.1g}.\n")
    yield "| fault | number | standstill, median | largest | goal | lost steps per fault | at most |"
    yield "|---|---|---|---|---|---|---|"
    for kind, number, median, largest, lost, most in result["rows"]:
        # a fault that struck at a moment is part of the row of its kind
        limit = "" if " " in kind else f"{goal(kind, result, heartbeat_ms, collective_ms):.2f} s"
        yield f"| {kind} | {number} | {median:.2f} s | {largest:.2f} s | {limit} | {lost:.2f} | {most} |"
    yield ""


def write(page, results_file, interval, heartbeat_ms, collective_ms):
    lines = []
    for text in results_file.read_text().splitlines():
        lines += table(json.loads(text), heartbeat_ms, collective_ms)
    page.write_text(PAGE.format(interval=interval, heartbeat=heartbeat_ms / 1000, collective=collective_ms, tables="\n".join(lines).rstrip()))
