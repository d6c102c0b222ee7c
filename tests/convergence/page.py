"""Judges the curves of convergence.py and writes its page and figures.

Criteria for the final loss (the mean over the last steps), and for the first steps, where rounding errors are still
small:
"""

import io
import re
import statistics
import textwrap

import cells

EARLY_STEPS = 10
EARLY = 1e-4            # largest difference of two layouts, or trainers, in the first steps in fp32; other dtypes are only shown
RELATIVE = 0.02         # largest relative difference of final losses of other dtypes from fp32
FLOOR = 0.005           # the least assumed spread, if seeds happen to lie closer together
LEARNT = 1.0            # least difference between a run's first and final loss


def final(cell, result):
    return statistics.fmean(result["losses"][-cells.MODELS[cell.model].tail:])


def distances(result, reference):
    return [abs(a - b) for a, b in zip(result["losses"], reference["losses"])]


def reference_of(cell):
    """The run that a cell is compared with: the same by Titan, on one rank, or in fp32."""
    if cell.trainer != "Titan":
        return cell.but(trainer="Titan")
    if cell.layout != "1 rank":
        return cell.but(layout="1 rank")
    if cell.numbers != "fp32":
        return cell.but(numbers="fp32")
    return None


def spread(results, cell):
    """Largest minus smallest final loss over the seeds of the plain run of this model and optimizer; None below two of them."""
    plain = cells.Cell(cell.model, optimizer=cell.optimizer)
    finals = [final(other, result) for other, result in results.items()
              if other.but(seed=plain.seed) == plain and "losses" in result]
    return max(max(finals) - min(finals), FLOOR) if len(finals) > 1 else None


def judge_distance(results, cell):
    result, reference = results[cell], reference_of(cell)
    there = results.get(reference, {})
    if "losses" not in there:
        return [f"not judged: {reference} is missing"]
    found = []
    early = max(distances(result, there)[:EARLY_STEPS])
    if cell.numbers == "fp32" and early > EARLY:
        found.append(f"FAILED: {early:.2g} from {reference} within {EARLY_STEPS} steps, more than {EARLY:g}")
    gap = abs(final(cell, result) - final(reference, there))
    if cell.numbers == "fp32":
        seeds = spread(results, cell)
        if seeds is None:
            found.append("not judged at the end: fewer than two seeds")
        elif gap > seeds:
            found.append(f"FAILED: ends {gap:.4f} from {reference}, more than seeds differ ({seeds:.4f})")
    elif gap > RELATIVE * final(reference, there):
        found.append(f"FAILED: ends {gap:.4f} from {reference}, more than {100 * RELATIVE:g} %")
    return found


def judge(results):
    """Remarks on each cell; a remark that begins with FAILED is a failure."""
    verdicts = {}
    for cell, result in results.items():
        if "failed" in result:
            verdicts[cell] = ["FAILED: " + result["failed"].splitlines()[0]]
            continue
        found = []
        if not final(cell, result) < result["losses"][0] - LEARNT:
            found.append(f"FAILED: learnt nothing: from {result['losses'][0]:.3f} to {final(cell, result):.3f}")
        if reference_of(cell):
            found += judge_distance(results, cell)
        verdicts[cell] = found
    return verdicts


def table(results, verdicts):
    lines = ["| model | trainer | layout | numbers | optimizer | seed | final loss | compared with | first steps | any step | at the end "
             "| in spreads of seeds | verdict |", "|---|---|---|---|---|---:|---:|---|---:|---:|---:|---:|---|"]
    for cell, result in results.items():
        head = f"| {cell.model} | {cell.trainer} | {cell.layout} | {cell.numbers} | {cell.optimizer} | {cell.seed} | "
        verdict = "; ".join(verdicts[cell]).replace("|", "/") or "as it should be"
        if "failed" in result:
            lines.append(head + f" | | | | | | {verdict} |")
            continue
        line = head + f"{final(cell, result):.4f} | "
        reference = reference_of(cell)
        there = results.get(reference, {})
        if "losses" in there:
            apart = distances(result, there)
            gap = final(cell, result) - final(reference, there)
            seeds = spread(results, cell)
            what = ("Titan" if cell.trainer != "Titan" else "1 rank" if cell.layout != "1 rank" else "fp32")
            line += (f"{what} | {max(apart[:EARLY_STEPS]):.1e} | {max(apart):.1e} | {gap:+.4f} | "
                     f"{f'{abs(gap) / seeds:.2f}' if seeds else ''} | ")
        else:
            line += "| | | | | "
        lines.append(line + verdict + " |")
    return lines


def smooth(losses, width):
    return [statistics.fmean(losses[max(0, i - width + 1):i + 1]) for i in range(len(losses))]


def label(cell):
    plain = cells.Cell(cell.model)
    parts = [str(getattr(cell, name)) for name in ("trainer", "layout", "numbers", "optimizer")
             if getattr(cell, name) != getattr(plain, name)]
    return ", ".join(parts) or "Titan, 1 rank, fp32, AdamW"


def figure(path, model, results):
    """Curves on the left; on the right the distance of each from its reference. Leaves out all seeds except the
    first."""
    import matplotlib
    import PIL.Image
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    shown = {cell: result for cell, result in results.items()
             if cell.model == model and cell.seed == cells.SEEDS[0] and "losses" in result}
    drawn, (left, right) = plt.subplots(1, 2, figsize=(10, 4), dpi=90)
    colors = plt.get_cmap("tab20")
    for i, (cell, result) in enumerate(shown.items()):
        steps = range(1, len(result["losses"]) + 1)
        style = {"color": colors(i % 20), "linewidth": 1, "linestyle": "--" if cell.trainer != "Titan" else "-"}
        left.plot(steps, smooth(result["losses"], 20), label=label(cell), **style)
        there = results.get(reference_of(cell), {})
        if "losses" in there:
            apart = [max(one, 1e-8) for one in smooth(distances(result, there), 20)]
            right.plot(steps, apart, label=label(cell), **style)
    left.set(xlabel="step", ylabel="loss (nats per token, mean of 20 steps)", title=cells.MODELS[model].title)
    right.set(xlabel="step", ylabel="distance (mean of 20 steps)", yscale="log", title="from what each is compared with")
    left.legend(fontsize=6 if len(shown) < 15 else 4, ncols=1 + len(shown) // 15)
    for axis in (left, right):
        axis.grid(alpha=0.3)
    drawn.tight_layout()
    whole = io.BytesIO()
    drawn.savefig(whole)
    plt.close(drawn)
    PIL.Image.open(whole).convert("RGB").quantize(256).save(path, optimize=True)  # half the size


def summary(results):
    """The spread over seeds of each model, with which distances are compared."""
    lines = ["| model | steps | tokens a step | final loss of each seed | spread |", "|---|---:|---:|---|---:|"]
    for model in dict.fromkeys(cell.model for cell in results):
        plain = {cell.seed: final(cell, result) for cell, result in results.items()
                 if cell == cells.Cell(model, cell.seed) and "losses" in result}
        seeds = spread(results, cells.Cell(model))
        one = cells.MODELS[model]
        lines.append(f"| {one.title} | {one.steps:,} | {cells.ROWS * one.seq_len} | "
                     f"{', '.join(f'{loss:.4f}' for loss in plain.values())} | {f'{seeds:.4f}' if seeds else ''} |")
    return lines


def write(path, plan, results, verdicts):
    """Fills in the page: replaces the text between the marks and keeps the rest."""
    wanted = cells.PLANS[plan]()
    missing = [str(cell) for cell in wanted if cell not in results]
    programs = sorted({result["program"] for result in results.values()})
    more = len(results) - (len(wanted) - len(missing))
    lines = [f"Plan \"{plan}\": {len(wanted) - len(missing)} of {len(wanted)} runs{f', and {more} more' if more else ''}. "
             f"Made by {'; '.join(programs)}.", ""]
    if missing:
        lines += [*textwrap.wrap("Not made: " + "; ".join(missing) + ".", 138), ""]
    lines += [*summary(results), "", *table(results, verdicts), ""]
    for model in dict.fromkeys(cell.model for cell in results):
        picture = path.parent / f"convergence_{model}.png"
        figure(picture, model, results)
        lines.append(f"![Loss curves, {cells.MODELS[model].title}]({picture.name})")
    pattern = re.compile(r"(<!-- curves -->\n).*?(<!-- end of curves -->)", re.S)
    text = path.read_text()
    if not pattern.search(text):
        raise RuntimeError(f"{path} has no place for the curves")
    path.write_text(pattern.sub(lambda m: m[1] + "\n".join(lines) + "\n" + m[2], text))
