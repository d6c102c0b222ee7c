"""What the groups of a drill did, from the files that tests/bad_plugins/drill.cpp writes."""

import statistics

from replica_groups import lines_of


def starts_of(folder, rank=0):
    """The events of each start of a group."""
    starts = {}
    for event in lines_of(folder / f"drill.{rank}.jsonl"):
        starts.setdefault(event["pid"], []).append(event)
    return starts


def divergences(starts, takeovers):
    """Commits whose weights are not those of the run, although their process went on without taking over another state, as text.

    `starts`: of all groups. `takeovers`: process -> the steps that it took over. The run is what the last commit came from: a group
    may commit a step just before it is lost, which the others then repeat with other members and other sums."""
    commits = {pid: [e for e in events if e["what"] == "commit"] for pid, events in starts.items()}
    after = {}  # (step, hash) -> the hashes of the same processes one step later, and the processes
    holders = {}
    for pid, own in commits.items():
        for event in own:
            holders.setdefault(event["step"], {}).setdefault(event["detail"], []).append(pid)
        for event, later in zip(own, own[1:]):
            took = event["step"] in takeovers.get(pid, ()) and len(holders[event["step"]]) > 1
            if later["step"] == event["step"] + 1 and not took:
                after.setdefault(later["step"], {}).setdefault(later["detail"], set()).add(event["detail"])
    last = max(holders)
    problems = []
    if len(holders[last]) > 1:
        problems.append(f"step {last}, the last one: {holders[last]}")
    run = {last: max(holders[last], key=lambda h: len(holders[last][h]))}
    for step in range(last - 1, min(holders) - 1, -1):
        before = after.get(step + 1, {}).get(run[step + 1], set())
        if len(before) > 1:
            problems.append(f"step {step + 1} was computed from different weights: {before}")
        if not before:  # whoever computed the next step took this one over, or all groups were lost
            before = set(holders.get(step, {}))
        run[step] = max(before, key=lambda h: len(holders[step].get(h, ())), default="")
    for pid, own in commits.items():
        for event, later in zip(own, own[1:]):
            if event["detail"] != run[event["step"]] and event["step"] not in takeovers.get(pid, ()):
                if later["step"] > event["step"]:
                    problems.append(f"process {pid} went on from other weights than the run's at step {event['step']}")
    return problems


def standstill(commit_times, begin, end):
    """The longest time in [begin, end] without a commit, of sorted `commit_times`."""
    times = [begin, *(t for t in commit_times if begin < t < end)]
    return max((b - a for a, b in zip(times, times[1:])), default=end - begin)


def steps_lost(starts, begin, end):
    """Steps that were begun in vain in [begin, end]: the most of any group, which counts an attempt once."""
    return max((sum(e["what"] == "abort" and begin <= e["time"] < end for e in events) for events in starts.values()), default=0)


def summary(faults):
    """Rows of a table, of each kind and of each of its moments: kind, number, median and largest standstill, lost steps per fault."""
    rows = []
    kinds = {fault["kind"] for fault in faults}
    moments = {f"{fault['kind']} {fault['moment']}" for fault in faults if fault["moment"]}
    for kind in sorted(kinds | moments):
        of_kind = [fault for fault in faults if kind in (fault["kind"], f"{fault['kind']} {fault['moment']}")]
        stills = [fault["standstill"] for fault in of_kind]
        lost = [fault["lost"] for fault in of_kind]
        rows.append((kind, len(of_kind), statistics.median(stills), max(stills), statistics.mean(lost), max(lost)))
    return rows
