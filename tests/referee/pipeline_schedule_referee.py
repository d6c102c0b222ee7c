"""Compares Titan's pipeline schedules with torch.distributed.pipelining.

    pipeline_schedule_referee.py --probe <pipeline_schedule_probe> --plugins <folder> [--titan <titan>]

For every schedule and many shapes: the table of each rank, its lowering by torch's _add_send_recv, tables that torch
writes read by Titan, tables that Titan writes read by torch, and damaged tables, of which Titan may accept none that
torch refuses. GPipe and 1F1B are recorded from torch's _step_microbatches, not taken from its tables. Times and
activations are compared with a longest path through the graph of dependencies, in exact fractions.
"""

import argparse
import collections
import csv
import fractions
import graphlib
import io
import itertools
import json
import logging
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

from torch.distributed.pipelining import schedules
from torch.distributed.pipelining._utils import generate_stage_to_rank_mapping

MULTI = {"Interleaved1F1B": (2, 3), "LoopedBFS": (2, 3), "InterleavedZeroBubble": (2, 3), "ZBVZeroBubble": (2,), "DualPipeV": (2,)}
SINGLE = ("GPipe", "1F1B")
V_SHAPED = ("ZBVZeroBubble", "DualPipeV")
COMPUTE = {schedules.F, schedules.B, schedules.I, schedules.W, schedules.OVERLAP_F_B}


class Stage:
    """A stage for torch's schedules, without a process group; records the computations that it gets."""

    submod = None

    def __init__(self, index, ranks, stages):
        self.stage_index, self.num_stages = index, stages
        self.group_rank, self.group_size = index % ranks, ranks
        self.is_first, self.is_last = index == 0, index == stages - 1
        self.done = []

    def no_transfers(self, _microbatch):
        return []

    get_fwd_recv_ops = get_fwd_send_ops = get_bwd_recv_ops = get_bwd_send_ops = no_transfers

    def forward_one_chunk(self, microbatch, *_args, **_kwargs):
        self.done.append(f"{self.stage_index}F{microbatch}")

    def backward_one_chunk(self, microbatch, **_kwargs):
        self.done.append(f"{self.stage_index}B{microbatch}")

    def perform_reduce_grad(self, _factor):
        pass

    def release_fwd_send_outputs(self, _microbatch):  # since PyTorch 2.13
        pass


def multi_schedule(name, ranks, stages, microbatches):
    """Torch's schedule as rank 0 sees it; None when torch refuses the shape."""
    kind = schedules.get_schedule_class(name)
    try:
        return kind([Stage(local * ranks, ranks, stages) for local in range(stages // ranks)], microbatches)
    except ValueError:
        return None


def single_table(name, ranks, microbatches):
    """The actions of torch's schedules with one stage per rank, rank by rank; None when torch refuses the shape."""
    table = []
    for rank in range(ranks):
        stage = Stage(rank, ranks, ranks)
        try:
            schedule = schedules.get_schedule_class(name)(stage, microbatches)
        except ValueError:
            return None
        schedule._stage_forward_initialized = True
        schedule._step_microbatches()
        table.append(stage.done)
    return table


def cells(row):
    """Texts of the computations in a row of torch's table."""
    return [str(action) for action in row if action is not None and action.computation_type in COMPUTE]


def parsed(text):
    """Text of a table as torch reads it."""
    return {rank: [schedules._Action.from_str(cell) for cell in row if cell] for rank, row in enumerate(csv.reader(io.StringIO(text)))}


def flat(rows):
    """Each rank's actions one by one; torch lists a pair's transfers after the pair, as Titan does."""
    return [",".join(str(action) for action in row) for _, row in sorted(rows.items())]


def torch_lowering(table, rank_of_stage, stages):
    actions = {rank: [schedules._Action.from_str(cell) for cell in row] for rank, row in enumerate(table)}
    return flat(schedules._add_send_recv(actions, lambda stage: rank_of_stage[stage], stages))


def text_of(table):
    return "".join(",".join(row) + "\n" for row in table)


def simulate(table, stages, costs):
    """Makespan, busy time and peaks of activations by a longest path over the cells of all ranks; a pair is one cell."""
    cost = dict(zip("FIW", costs))
    cost["B"] = cost["I"] + cost["W"]
    rows = [[tuple((int(stage), kind, int(microbatch)) for stage, kind, microbatch in re.findall(r"(\d+)([FBIW])(\d+)", cell))
             for cell in row] for row in table]
    ends = {}  # of each action: its cell, and how long after the cell's start it ends
    for cell in itertools.chain(*rows):
        times = itertools.accumulate(cost[kind] for _, kind, _ in cell)
        ends.update((action, (cell, time)) for action, time in zip(cell, times))
    awaited = {}  # of each cell: the actions that must have ended
    for row in rows:
        for before, cell in zip([None, *row], row):
            awaited[cell] = [ends[before[-1]]] if before else []
            for stage, kind, microbatch in cell:
                if kind == "F" and stage > 0:
                    awaited[cell].append(ends[stage - 1, "F", microbatch])
                if kind in "BI" and stage + 1 < stages:
                    awaited[cell].append(next(ends[stage + 1, k, microbatch] for k in "BI" if (stage + 1, k, microbatch) in ends))
    start = {}
    for cell in graphlib.TopologicalSorter({cell: {before for before, _ in needed} for cell, needed in awaited.items()}).static_order():
        start[cell] = max((start[before] + time for before, time in awaited[cell]), default=0)
    peaks = []
    for end in ("BW", "BI"):
        changes = [[1 if kind == "F" else -1 if kind in end else 0 for cell in row for _, kind, _ in cell] for row in rows]
        peaks.append([max(itertools.accumulate(row)) for row in changes])
    busy = [sum(cost[kind] for cell in row for _, kind, _ in cell) for row in rows]
    return max(start[cell] + time for cell, time in ends.values()), busy, peaks


class Referee:
    def __init__(self, arguments):
        self.arguments = arguments
        self.counts = collections.Counter()
        self.failures = []

    def ask(self, cases):
        done = subprocess.run([self.arguments.probe, self.arguments.plugins], input=json.dumps(cases), capture_output=True,
                              text=True, check=True, timeout=1800)
        return json.loads(done.stdout)

    def compare(self, what, case, got, wanted):
        self.counts[what] += 1
        if got != wanted:
            self.failures.append(f"{what} {case}:\n  titan {got}\n  torch {wanted}")

    def compare_times(self, case, answer, table):
        costs = [fractions.Fraction(cost) for cost in case.get("costs", (1, 1, 1))]
        makespan, busy, (peak, peak_until_input_grad) = simulate(table, answer["stages"], costs)
        self.compare("makespan", case, round(answer["makespan"], 9), round(float(makespan), 9))
        self.compare("busy", case, [round(time, 9) for time in answer["busy"]], [round(float(time), 9) for time in busy])
        self.compare("peak", case, answer["peak"], peak)
        self.compare("peak until I", case, answer["peak_until_input_grad"], peak_until_input_grad)

    def shapes(self, rng):
        for ranks in (2, 3, 4, 8):
            counts = {1, 2, 3, ranks - 1, ranks, ranks + 1, 2 * ranks - 1, 2 * ranks, 2 * ranks + 2, 3 * ranks, 4 * ranks, 5 * ranks + 1}
            for microbatches in sorted(counts - {0}):
                costs = [rng.choice((0.25, 0.5, 1, 1.5, 2, 3)) for _ in range(3)]
                for name in SINGLE:
                    yield {"schedule": name, "ranks": ranks, "microbatches": microbatches, "costs": costs}
                for name, per_rank in MULTI.items():
                    for local in per_rank:
                        yield {"schedule": name, "ranks": ranks, "stages": ranks * local, "microbatches": microbatches, "costs": costs}

    def run_shapes(self, rng, folder):
        """Compares tables and their lowering; returns the tables that exist, with their cases."""
        cases, again, kept = list(self.shapes(rng)), [], []
        for case, answer in zip(cases, self.ask(cases)):
            name, ranks, microbatches = case["schedule"], case["ranks"], case["microbatches"]
            stages = case.get("stages", ranks)
            schedule = None if name in SINGLE else multi_schedule(name, ranks, stages, microbatches)
            table = single_table(name, ranks, microbatches) if name in SINGLE else \
                [cells(row) for _, row in sorted(schedule.pipeline_order.items())] if schedule else None
            self.compare("refused", case, answer.get("kind"), None if table else "config")
            if not table or "error" in answer:
                continue
            ranks_of_stages = generate_stage_to_rank_mapping(ranks, stages, style="v" if name in V_SHAPED else "loop")
            self.compare("table", case, answer["compute"], text_of(table))
            self.compare("lowered", case, flat(parsed(answer["lowered"])), torch_lowering(table, ranks_of_stages, stages))
            self.compare_times(case, answer, table)
            kept.append((case, table))
            if schedule:
                file = folder / f"torch{len(again)}.csv"
                schedule._dump_csv(file, format="compute_only")
                again.append(({"schedule": "csv", "options": {"file": str(file)}, "ranks": ranks, "microbatches": microbatches}, answer))
                file = folder / "titan.csv"
                file.write_text(answer["compute"])
                reader = schedules._PipelineScheduleRuntime([Stage(local * ranks, ranks, stages) for local in range(stages // ranks)],
                                                            microbatches)
                reader._load_csv(str(file), format="compute_only")
                self.compare("read by torch", case, [cells(row) for _, row in sorted(reader.pipeline_order.items())], table)
        for (case, wanted), answer in zip(again, self.ask([case for case, _ in again])):
            for key in ("stages", "compute", "lowered"):
                self.compare(f"written by torch, {key}", case, answer.get(key, answer), wanted[key])
        return kept

    def run_damaged(self, rng, kept, folder):
        """Titan accepts nothing that torch refuses. Counts the tables that only Titan refuses."""
        cases, tables = [], []
        for number in range(self.arguments.damaged):
            case, table = rng.choice([pair for pair in kept if pair[0]["ranks"] <= 4 and pair[0]["microbatches"] <= 8])
            table = damaged(rng, table)
            file = folder / f"damaged{number}.csv"
            file.write_text(text_of(table))
            tables.append((case, table))
            cases.append({"schedule": "csv", "options": {"file": str(file)}, "ranks": case["ranks"], "microbatches": case["microbatches"],
                          "stages": case.get("stages", case["ranks"])})
        for (case, table), answer in zip(tables, self.ask(cases)):
            stages = case.get("stages", case["ranks"])
            refused = torch_refuses(table, case["ranks"], stages, case["microbatches"])
            self.counts["damaged, " + ("refused" if "error" in answer else "taken") + " by titan, " +
                        ("refused" if refused else "taken") + " by torch"] += 1
            if refused and "error" not in answer:
                self.failures.append(f"taken though torch refuses it ({refused}):\n{text_of(table)}")
            if not refused and "error" in answer and not STRICTER.search(answer["error"]):
                self.failures.append(f"refused though torch takes it ({answer['error']}):\n{text_of(table)}")
            if "error" not in answer:
                self.compare_times(dict(case, costs=(1, 1, 1)), answer, table)

    def run_command(self, kept, folder):
        """The command writes the same tables as the probe."""
        for case, table in kept[:: max(1, len(kept) // 12)]:
            file, drawing = folder / "described.csv", folder / "described.svg"
            words = [self.arguments.titan, "describe", "pipeline_schedule", case["schedule"], "--path", self.arguments.plugins,
                     "--ranks", str(case["ranks"]), "--microbatches", str(case["microbatches"]), "--csv", str(file), "--svg", str(drawing)]
            if "stages" in case:
                words += ["--stages", str(case["stages"])]
            subprocess.run(words, check=True, capture_output=True, timeout=1800)
            self.compare("titan describe --csv", case, file.read_text(), text_of(table))
            titles = [title.text.split(",")[0] for title in ElementTree.parse(drawing).iter("{http://www.w3.org/2000/svg}title")]
            self.compare("titan describe --svg", case, titles, re.findall(r"\d+[FBIW]\d+", text_of(table)))


# torch counts different microbatches, so a cell may occur twice; a B next to an I or a W passes when the sums fit, and
# a stage without any cell is not noticed
STRICTER = re.compile(r"occurs twice|repeats|is missing|must hold|only a forward can overlap|not preceded")


def damaged(rng, table):
    table = [list(row) for row in table]
    for _ in range(rng.choice((1, 1, 2))):
        rank = rng.choice([rank for rank, row in enumerate(table) if len(row) > 1])
        at = rng.randrange(len(table[rank]))
        change = rng.choice(("drop", "repeat", "swap", "move", "other rank", "other microbatch"))
        cell = table[rank].pop(at)
        if change == "repeat":
            table[rank][at:at] = [cell, cell]
        elif change == "swap":
            table[rank].insert(max(0, at - 1), cell)
        elif change == "move":
            table[rank].insert(rng.randrange(len(table[rank]) + 1), cell)
        elif change == "other rank":
            other = table[rng.randrange(len(table))]
            other.insert(rng.randrange(len(other) + 1), cell)
        elif change == "other microbatch":
            table[rank].insert(at, re.sub(r"\d+$", str(rng.randrange(4)), cell))
    return table


def torch_refuses(table, ranks, stages, microbatches):
    """Why torch refuses the table; empty when torch would run it."""
    actions = {rank: [schedules._Action.from_str(cell) for cell in row] for rank, row in enumerate(table)}
    try:
        rank_of_stage = schedules._validate_schedule(actions, ranks, stages, microbatches)
        schedules._add_send_recv(actions, lambda stage: rank_of_stage[stage], stages)
    except (AssertionError, KeyError, IndexError) as error:  # IndexError: while torch formats its refusal
        return str(error).splitlines()[0] if str(error) else "refused"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probe", required=True)
    parser.add_argument("--plugins", required=True)
    parser.add_argument("--titan")
    parser.add_argument("--damaged", type=int, default=600)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    rng = random.Random(arguments.seed)
    referee = Referee(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kept = referee.run_shapes(rng, folder)
        referee.run_damaged(rng, kept, folder)
        if arguments.titan:
            referee.run_command(kept, folder)
    for what, count in sorted(referee.counts.items()):
        print(f"{count:6} {what}")
    for failure in referee.failures[:10]:
        print(failure, file=sys.stderr)
    compared = sum(referee.counts.values())
    print(f"{compared} comparisons, {len(referee.failures)} differences")
    return 1 if referee.failures or compared < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
