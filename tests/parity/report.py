"""Builds the text of docs/results/parity.md from the rows that ladder.py has measured."""

import layouts


def by_layout(rows):
    """{(rung, ranks, layers): {(model, dtype): row}}, in the order of the rungs."""
    found = {}
    for row in rows:
        found.setdefault((row["rung"], row["ranks"], row["layers"]), {})[row["model"], row["dtype"]] = row
    return found


def table(rows, models):
    """Markdown: per rung that ran one of these models one line, one column per model."""
    rows = [row for row in rows if row["model"] in models]
    lines = ["| layout | ranks | blocks | weights and tokens | " + " | ".join(
        f"{model}: fp64 loss, norm; fp32 loss" for model in models) + " | sent by rank 0 in fp32, MiB per step |",
        "|---|---|---|---|" + "---|" * (len(models) + 1)]
    for (rung, ranks, layers), cells in by_layout(rows).items():
        texts = []
        for model in models:
            wide, narrow = cells.get((model, "float64")), cells.get((model, "float32"))
            texts.append((f"{wide['loss']:.0e}, {wide['norm']:.0e}; " if wide else "–; ")
                         + (f"{narrow['loss']:.0e}" if narrow else "–") if wide or narrow else "")
        equal = "equal" if all(cell["equal"] for cell in cells.values()) else "DIFFERENT"
        narrow = {model: row for (model, dtype), row in cells.items() if dtype == "float32"}
        sent = f'{narrow.get("plain", next(iter(narrow.values())))["sent"]:.2f}' if narrow else "–"
        lines.append(f"| {rung} | {ranks} | {layers} | {equal} | " + " | ".join(texts) + f" | {sent} |")
    return "\n".join(lines)


def same_bits(rows):
    """Markdown: of each schedule, how many steps have a loss and a norm with the bits of GPipe's."""
    cells = {rung: models for (rung, _, _), models in by_layout(rows).items()}
    lines = ["| schedule | " + " | ".join(f"PP {ranks}: equal losses | PP {ranks}: equal norms" for ranks in (2, 4)) + " |",
             "|---|" + "---|" * 4]
    for name in (*layouts.SCHEDULES[1:], "csv"):
        texts = []
        for ranks in (2, 4):
            first = cells.get(f"PP {ranks}, GPipe", {})
            pairs = [(row, first[key]) for key, row in cells.get(f"PP {ranks}, {name}", {}).items() if key in first]
            for figure in ("losses", "norms"):
                equal = [a == b for mine, its in pairs for a, b in zip(mine[figure], its[figure], strict=True)]
                texts.append(f"{sum(equal)} of {len(equal)}")
        lines.append(f"| {name} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def document(rows, limits, steps, turns):
    worst = {dtype: max(max(row["loss"], row["norm"]) for row in rows if row["dtype"] == dtype) for dtype in limits}
    later = max(row["last"] for row in rows if row["dtype"] == "float32")
    ranks = sorted({row["ranks"] for row in rows})
    models = "every model" if turns >= len(layouts.LLAMAS) else (
        f"{turns} of the models in turn, each schedule with *{next(iter(layouts.MODELS))}* besides")
    return f"""# The parity ladder

The same job under every layout gives the same training run. Each line is one layout on CPU ranks of one machine, compared
with one rank; figures are the largest relative differences.
{len(rows)} runs of {len(by_layout(rows))} layouts on {ranks[0]} to {ranks[-1]} ranks:

- **weights and tokens**: XXH3 of every whole initial weight, and a hash of every row of every step's batch, equal to
  one rank's.
- **fp64**: `training.dtype = "float64"`, {steps} steps, loss and gradient norm, limit {limits['float64'][1]:.0e}. This is the
  proof: what is left is rounding. Largest of all: {worst['float64']:.1e}.
- **fp32**: the first {limits['float32'][0]} steps, loss (the norm is judged too), limit {limits['float32'][1]:.0e}. Largest of all: {worst['float32']:.1e};
  over all {steps} steps, where rounding grows and nothing is judged: {later:.1e}.

8 sequences of 64 tokens per step, models of 2 blocks, or {layouts.DEEP} where 4 pipeline ranks need 8 stages: *plain* (dim 64, 8
heads, 4 key heads), *tied* (head and embedding share one weight; on a loop of stages they lie on two ranks, on a V on
one), *uneven* (dim 70, vocabulary 2,051, hidden size odd: nothing divides by the ranks).

PP: pipeline, microbatches of one sequence, 1F1B where no schedule is named. *csv*: a table that runs the stages from
the last rank to the first, two forwards and two backwards in turn. CP: context parallel, keys and values by all-gather
and with head-tail balancing where nothing else is said; *alltoall* is the ring, *unbalanced* gives rank r the r-th
piece of each sequence. *documents*: rows of several short documents, none of which sees another
(`data.isolate_documents`), without labels across their ends.

{table(rows, layouts.LLAMAS)}

## Norms that all heads share

A Qwen3 with a tied matrix, dim 64, 8 heads and 4 key heads of 16 elements, hidden size 171. A rank of tensor parallelism computes
its own heads alone, and the weights by which all heads of queries and keys are normalised get a part of their gradients there.

{table(rows, ["qwen3"])}

## Experts

Three models with eight experts a block, in float64 alone (in fp32 scores that are nearly equal may choose another expert): *mixtral*,
*deepseek* (latent keys and values, a dense first block, shared experts, groups, biases that move) and *gpt_oss* (windows of 20 tokens,
sinks, biases). EP: ranks of the others that share the experts; *experts cut*: each over the ranks of TP, too.

{table(rows, layouts.WITH_EXPERTS)}

## Schedules to the bit

How many steps have a loss and a norm with the very bits that GPipe gives on as many ranks, both dtypes, the models
that both ran with:

{same_bits(rows)}

Each weight's gradient is a sum over microbatches, and schedules that add in the same order give the same bits: all but
LoopedBFS, which runs its backwards from the last microbatch to the first, and this csv, which swaps neighbours. The norm can
still differ in its last bit: it adds one number per rank, and with other stages on a rank these are other numbers. It
scales the gradients, so that a loss can follow; without clipping the losses of these schedules are equal in every bit,
which `end_to_end.pipeline` checks. A tied weight on two ranks is the sum of two sums, on one rank a single one.

## How it is run

Made by `python3 tests/parity/ladder.py --turns {turns} --write docs/results/parity.md`: in each dtype a layout ran with
{models}; an empty cell was not run.

The test `parity.ladder` runs every layout once per dtype within the same limits, the models taking turns from one
layout to the next (in fp32 shifted by one, so that a layout meets two of them): 10 steps in fp64, the 5 that are
judged in fp32. It leaves out the layout of 16 ranks.
"""
