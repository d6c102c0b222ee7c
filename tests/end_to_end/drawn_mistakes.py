"""Adds random mistakes to valid jobs, and requires that each of them is reported with its line.

Each draw is a job with one to four mistakes of different classes at known lines. `titan train` must end with code 2,
name file and line of each (a mistake on the command line: the flag), name no other line, and write nothing. `--seed`
and `--draws` choose them; `--seed S --only N` shows one; `--strict-time` also requires that no report takes a second,
which only an idle machine can judge.
"""

import argparse
import dataclasses
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from harness import ROOT, TITAN, environment

ASSETS = ROOT / "tests/assets/tokenizer"
CORPUS = ROOT / "tests/assets/corpus/train.jsonl"


class Recipe:
    """Sections of lines. A line may have the class of its mistake."""

    def __init__(self):
        self.sections = {
            "job": [f'description = "a drawn job"'],
            "metrics": ["log_freq = 1", 'loggers = ["console", "jsonl"]'],
            "model": ['name = "llama3"', 'flavor = "debugmodel"', f'hf_assets_path = "{ASSETS}"'],
            "optimizer": ['name = "AdamW"', "lr = 1e-3"],
            "lr_scheduler": ["warmup_steps = 1"],
            "training": ['dataset = "jsonl"', f'dataset_path = "{CORPUS}"', "local_batch_size = 2", "seq_len = 64", "steps = 2"],
            "parallelism": ["data_parallel_shard_degree = -1"],
            "checkpoint": ["enable = false", "interval = 5"],
            "activation_checkpoint": ['mode = "none"'],
            "debug": ["seed = 1"],
        }
        self.marks = {}      # text of a line -> True: a report must name it
        self.arguments = []
        self.flags = []      # words of the command line that reports must show
        self.taken = set()   # keys and sections that a mistake has changed
        self.unjudged = set()  # sections of missing plugins, whose options are unknown
        self.world = 1

    def set(self, section, line, wrong=False):
        """Sets the key of `line` in `section`; `line` may have several lines: '|' marks the wrong ones."""
        lines = self.sections.setdefault(section, [])
        key = line.split("=")[0].strip()
        lines[:] = [old for old in lines if old.split("=")[0].strip() != key]
        lines.append(line if not wrong else line + " # wrong")

    def claim(self, *keys):
        """False when another mistake has changed one of these."""
        if self.taken & set(keys) or any(key.split(".")[0] in self.unjudged for key in keys):
            return False
        self.taken |= set(keys)
        return True

    def text(self, drawn):
        sections = list(self.sections.items())
        drawn.shuffle(sections)
        sections.sort(key=lambda section: section[0] != "")  # keys outside of sections come first
        lines = []
        for name, content in sections:
            if name:
                lines.append(f"[{name}]" if not name.endswith("!") else f"[{name[:-1]}] # wrong")
            content = list(content)
            drawn.shuffle(content)
            for line in content:
                lines.extend(line.split("\n"))
            lines.append("")
        wrong = [i + 1 for i, line in enumerate(lines) if line.endswith("# wrong")]
        return "\n".join(lines) + "\n", wrong


def misspelt(drawn, word):
    """The word with one letter doubled, dropped or swapped; never a word that exists."""
    i = drawn.randrange(1, len(word) - 1)
    return drawn.choice([word[:i] + word[i] + word[i:], word[:i] + "q" + word[i + 1:]])


INTEGERS = [("training", "local_batch_size"), ("training", "steps"), ("training", "gc_freq"), ("checkpoint", "interval"),
            ("metrics", "log_freq"), ("validation", "freq"), ("comm", "init_timeout_seconds"), ("debug", "seed"),
            ("training.dataloader", "num_workers"), ("data", "shuffle_buffer"), ("lr_scheduler", "warmup_steps"),
            ("profiling", "profile_freq")]
BOOLEANS = [("checkpoint", "load_only"), ("debug", "deterministic"), ("data", "shuffle"), ("metrics", "save_for_all_ranks"),
            ("profiling", "enable_profiling"), ("compile", "enable"), ("validation", "enable"),
            ("optimizer", "early_step_in_backward"), ("training.dataloader", "pin_memory")]
NUMBERS = [("optimizer", "lr"), ("optimizer", "eps"), ("training", "max_norm"), ("lr_scheduler", "min_lr_factor"),
           ("activation_checkpoint", "memory_budget"), ("optimizer", "weight_decay")]
WORDS = [("checkpoint", "async_mode"), ("data", "packing"), ("training", "dtype"), ("lr_scheduler", "decay_type"),
         ("optimizer", "implementation"), ("checkpoint", "export_dtype"), ("fault_tolerance", "process_group"),
         ("parallelism", "fsdp_reshard_after_forward"), ("activation_checkpoint", "determinism_check"),
         ("quantize.linear.float8", "recipe_name")]
KEYS = ["seq_len", "steps", "global_batch_size", "interval", "async_mode", "weight_decay", "warmup_steps", "hf_assets_path",
        "deterministic", "shuffle_buffer", "log_freq"]


# --- the classes: each changes the job and returns True, or returns False if it does not fit with the
# others
def unknown_key(recipe, drawn):
    section = drawn.choice(["job", "metrics", "model", "optimizer", "lr_scheduler", "training", "parallelism", "checkpoint",
                            "debug", "activation_checkpoint", "validation", "data", "comm", "training.loss_scaling"])
    key = misspelt(drawn, drawn.choice(KEYS))
    if not recipe.claim(f"{section}.{key}"):
        return False
    recipe.set(section, f"{key} = {drawn.choice(['3', 'true', chr(34) + 'x' + chr(34)])}", wrong=True)
    return True


def unknown_section(recipe, drawn):
    name = misspelt(drawn, drawn.choice(["training", "optimizer", "checkpoint", "parallelism", "quantize.linear.float8"]))
    if not recipe.claim(name):
        return False
    recipe.sections[name + "!"] = ["anything = 1"]
    return True


def key_outside(recipe, drawn):
    if not recipe.claim("outside"):
        return False
    recipe.sections = {"": ["steps = 3 # wrong"], **recipe.sections}
    return True


def wrong_value(kind, keys, values):
    def mistake(recipe, drawn):
        section, key = drawn.choice(keys)
        if not recipe.claim(f"{section}.{key}"):
            return False
        recipe.set(section, f"{key} = {drawn.choice(values)}", wrong=True)
        return True
    mistake.__name__ = kind
    return mistake


def unknown_component(recipe, drawn):
    section, key, name = drawn.choice([
        ("optimizer", "name", "AdamW"), ("lr_scheduler", "name", "warmup_stable_decay"), ("tokenizer", "name", "huggingface"),
        ("device", "name", "cpu"), ("training", "dataset", "jsonl"), ("activation_checkpoint", "mode", "selective"),
        ("parallelism", "pipeline_parallel_schedule", "Interleaved1F1B"), ("model", "flavor", "debugmodel")])
    if not recipe.claim(f"{section}.{key}"):
        return False
    name = drawn.choice([misspelt(drawn, name), "", "none at all", "acme/" + name])
    if name.startswith("acme/") and key == "name":
        if any(taken.startswith(f"{section}.") and taken != f"{section}.{key}" for taken in recipe.taken):
            return False
        recipe.unjudged.add(section)
    recipe.set(section, f'{key} = "{name}"', wrong=True)
    return True


def unknown_items(recipe, drawn):
    """One or two wrong names in a list of several lines."""
    section, key, right, names = drawn.choice([
        ("metrics", "loggers", ["console"], ["consol", "jsonx", "wandbb"]),
        ("model", "converters", [], ["quantize.linear.float9", "lorra", "acme/nothing"]),
        ("parallelism", "further", [], ["tenssor", "nothing", "acme/p"]),
        ("checkpoint", "exclude_from_loading", ["optimizer"], ["optimizers", "loader"]),
        ("compile", "components", ["model"], ["modell", "losss"])])
    if not recipe.claim(f"{section}.{key}"):
        return False
    wrong = drawn.sample(names, drawn.choice([1, 2]))
    items = [f'  "{name}",' for name in right] + [f'  "{name}", # wrong' for name in wrong]
    drawn.shuffle(items)
    recipe.set(section, f"{key} = [\n" + "\n".join(items) + "\n]")
    return True


def twice_in_a_list(recipe, drawn):
    if not recipe.claim("metrics.loggers"):
        return False
    recipe.set("metrics", 'loggers = [\n  "console",\n  "jsonl",\n  "console", # wrong\n]')
    return True


def plugin_option(recipe, drawn):
    """A mistake that only the plugin can detect, when it is created."""
    which = drawn.randrange(6)
    if which == 0:
        if not recipe.claim("optimizer.name", "optimizer.lr", "optimizer.eps", "optimizer.weight_decay",
                            "optimizer.implementation"):
            return False
        recipe.sections["optimizer"] = ['name = "SGD"', "lr = 0.1", "nesterov = true # wrong"]
    elif which == 1:
        if not recipe.claim("optimizer.groups.a"):
            return False
        recipe.sections["optimizer.groups.a"] = ['patterns = [\n  "*norm*",\n  "*nrm*", # wrong\n]', "weight_decay = 0"]
    elif which == 2:
        if not recipe.claim("training.dataset", "training.dataset_path"):
            return False
        recipe.set("training", 'dataset = "synthetic"')
        recipe.sections["training"] = [l for l in recipe.sections["training"] if not l.startswith("dataset_path")]
        recipe.sections["dataset.synthetic"] = ["vocab_size = 1 # wrong"]
    elif which == 3:
        if not recipe.claim("model.n_heads", "model.flavor"):
            return False
        recipe.set("model", "n_heads = 7", wrong=True)
    elif which == 4:
        if not recipe.claim("model.vocab_size", "model.flavor", "model.hf_assets_path", "tokenizer.name"):
            return False
        recipe.set("model", "vocab_size = 1000", wrong=True)
    else:
        if not recipe.claim("model.converters", "converter.lora"):
            return False
        recipe.set("model", 'converters = ["lora"]')
        recipe.sections["converter.lora"] = ['targets = [\n  "wq",\n  "wz", # wrong\n]']
    return True


def unfit_layout(recipe, drawn):
    """A mistake that does not fit the ranks, the batch or the model. At most one per job, because degrees depend on each other."""
    if not recipe.claim("layout", "model.flavor", "model.n_heads", "parallelism.fsdp_reshard_after_forward",
                        "training.local_batch_size", "training.seq_len", "training.dtype", "training.steps",
                        "parallelism.pipeline_parallel_schedule", "model.converters", "activation_checkpoint.mode"):
        return False
    which = drawn.randrange(7)
    if which == 0:
        recipe.set("training", "seq_len = 96")
        recipe.set("parallelism", "tensor_parallel_degree = 3", wrong=True)
    elif which == 1:
        recipe.set("training", "global_batch_size = 3", wrong=True)
    elif which == 2:
        recipe.set("training", "seq_len = 63", wrong=True)
    elif which == 3:
        recipe.world = 3
        recipe.set("training", "seq_len = 66")
        recipe.set("parallelism", "tensor_parallel_degree = 3", wrong=True)
    elif which == 4:
        recipe.world = 2
        recipe.set("parallelism", "pipeline_parallel_degree = 2")
        recipe.set("parallelism", 'module_fqns_per_model_part = [\n  ["tok_embeddings", "layers.0", "layers.1", "layers.2"],\n'
                   '  ["layers.3", "layers.4", "layers.5", "norm", "output",\n  "layers.99"], # wrong\n]')
    elif which == 5:
        recipe.world = 2
        recipe.set("parallelism", "pipeline_parallel_degree = 2")
        recipe.set("parallelism", "pipeline_parallel_microbatch_size = 3", wrong=True)
    else:
        recipe.world = 2
        recipe.set("parallelism", "pipeline_parallel_degree = 2")
        recipe.set("parallelism", "pipeline_parallel_first_stage_less_layers = 20", wrong=True)
    return True


def missing_path(recipe, drawn):
    which = drawn.randrange(4)
    if which == 0:
        if not recipe.claim("training.dataset", "training.dataset_path"):
            return False
        recipe.set("training", 'dataset_path = "/nowhere/corpus.jsonl"', wrong=True)
    elif which == 1:
        if not recipe.claim("model.hf_assets_path", "tokenizer.name"):
            return False
        recipe.set("model", 'hf_assets_path = "/nowhere/tokenizer"', wrong=True)
    elif which == 2:
        if not recipe.claim("checkpoint.initial_load_path"):
            return False
        recipe.set("checkpoint", "enable = true")
        recipe.set("checkpoint", 'initial_load_path = "/nowhere/checkpoint"', wrong=True)
    else:
        if not recipe.claim("layout", "parallelism.pipeline_parallel_schedule"):
            return False
        recipe.set("parallelism", 'pipeline_parallel_schedule_csv = "/nowhere/table.csv"', wrong=True)
    return True


def contradiction(recipe, drawn):
    """Two keys that exclude each other; the report always names the same one of them."""
    which = drawn.randrange(4)
    if which == 0:
        if not recipe.claim("checkpoint.keep_latest_k"):
            return False
        recipe.set("checkpoint", "keep_latest_k = 1", wrong=True)
    elif which == 1:
        if not recipe.claim("checkpoint.create_seed_checkpoint", "checkpoint.initial_load_path"):
            return False
        recipe.set("checkpoint", "create_seed_checkpoint = true", wrong=True)
    elif which == 2:
        if not recipe.claim("training.max_norm", "optimizer.early_step_in_backward"):
            return False
        recipe.set("optimizer", "early_step_in_backward = true", wrong=True)
    else:
        if not recipe.claim("validation.steps"):
            return False
        recipe.set("validation", "steps = 0", wrong=True)
    return True


def flag(recipe, drawn):
    arguments, shown = drawn.choice([
        (["--training.stepz", "3"], "--training.stepz"), (["--checkpoint.no-enabel"], "--checkpoint.no-enabel"),
        (["--comm.trace_buf_size=many"], "--comm.trace_buf_size=many"), (["--metrics.log_freq"], "--metrics.log_freq"),
        (["--checkpoint.async_mode", "sometimes"], "--checkpoint.async_mode sometimes"), (["stray"], "stray"),
        (["--set", "job.description=text"], "--set job.description=text"),
        (["--model.nonsense=1"], "--model.nonsense=1"), (["--debug.deterministic=maybe"], "--debug.deterministic=maybe")])
    if not recipe.claim("flag", "checkpoint.async_mode", "metrics.log_freq", "debug.deterministic"):
        return False
    recipe.arguments += arguments
    recipe.flags.append(shown)
    return True


def old_and_new_name(recipe, drawn):
    if not recipe.claim("training.local_batch_size", "layout"):
        return False
    recipe.set("training", "batch_size = 5", wrong=True)
    return True


CLASSES = [
    unknown_key, unknown_section, key_outside,
    wrong_value("wrong_type_of_integer", INTEGERS, ['"many"', "3.7", "true", "[1]"]),
    wrong_value("integer_out_of_range", [k for k in INTEGERS if k[1] not in ("seed", "num_workers", "warmup_steps", "profile_freq")],
                ["0", "-5"]),
    wrong_value("wrong_type_of_boolean", BOOLEANS, ['"yes"', "1", "[]"]),
    wrong_value("wrong_number", NUMBERS, ["-1", "nan", '"small"', "inf", "true"]),
    wrong_value("wrong_word", WORDS, ['"sometimes"', "3", "[\"float32\"]"]),
    wrong_value("wrong_type_of_list", [("metrics", "loggers"), ("model", "converters"), ("plugins", "paths")],
                ['"console"', "7", "true"]),
    wrong_value("date", [("job", "description"), ("checkpoint", "folder"), ("metrics", "save_tb_folder")], ["1979-05-27"]),
    unknown_component, unknown_items, twice_in_a_list, plugin_option, unfit_layout, missing_path, contradiction, flag,
    old_and_new_name,
]


def syntax(recipe, drawn):
    """TOML that cannot be read ends the reading, so it must be the only mistake."""
    recipe.sections["job"] = [drawn.choice(['description = "open # wrong', "description = = 3 # wrong", "dump folder = 1 # wrong",
                                            "description = 1 2 # wrong", "x = [1, 2 # wrong\n"]).split("\n")[0]]
    return True


@dataclasses.dataclass
class Draw:
    text: str
    lines: list
    recipe: Recipe
    names: list


def draw(seed, number):
    drawn = random.Random(f"{seed}/{number}")
    recipe = Recipe()
    names = []
    if drawn.random() < 0.05:
        syntax(recipe, drawn)
        names.append("syntax")
    else:
        wanted = drawn.randint(1, 4)
        while len(names) < wanted:
            mistake = drawn.choice(CLASSES)
            if mistake.__name__ not in names and mistake(recipe, drawn):
                names.append(mistake.__name__)
    text, lines = recipe.text(drawn)
    if names == ["syntax"] and "x = [1, 2" in text:
        lines = []  # the parser may notice an unclosed list at any line
    return Draw(text, lines, recipe, names)


def problems_of(one, run, out, seconds, strict_time):
    found = []
    if run.returncode != 2:
        found.append(f"exit code {run.returncode} instead of 2")
    reported = {int(line) for line in re.findall(r"^\S*train\.toml:(\d+):\d+: error: ", run.stderr, re.M)}
    for line in sorted(set(one.lines) - reported):
        found.append(f"line {line} is not reported")
    if one.names != ["syntax"]:
        for line in sorted(reported - set(one.lines)):
            found.append(f"line {line} is reported and right")
        unplaced = re.findall(r"^error: .*", run.stderr, re.M)
        found += [f"without a place: {text}" for text in unplaced]
    elif not reported:
        found.append("the place of the malformed text is not reported")
    for shown in one.recipe.flags:
        if f"      | {shown}" not in run.stderr:
            found.append(f"the flag {shown} is not shown")
    if "internal error" in run.stderr:
        found.append("an internal error")
    if run.stdout:
        found.append("standard output is not empty")
    if out.exists():
        found.append(f"something was written: {[str(path) for path in out.rglob('*')]}")
    if strict_time and seconds >= 1:
        found.append(f"it took {seconds:.2f} s")
    return found


def run_one(one, folder, dry_run):
    file = folder / "train.toml"
    file.write_text(one.text)
    out = folder / "out"
    # several ranks need a launcher to start, but not for the check
    ranks = ["--dry-run", "--world-size", str(one.recipe.world)] if one.recipe.world > 1 or dry_run else []
    command = [TITAN, "train", "--job.config_file", file, "--job.dump_folder", out, *ranks, *one.recipe.arguments]
    start = time.monotonic()
    run = subprocess.run(list(map(str, command)), cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, errors="replace", timeout=300)
    return run, out, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", type=int, help="run only this draw and show it")
    parser.add_argument("--strict-time", action="store_true")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.draws} draws from {options.first}", flush=True)
    times, failed, mistakes = [], 0, 0
    for number in [options.only] if options.only is not None else range(options.first, options.first + options.draws):
        one = draw(options.seed, number)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="titan_drawn_"))
        try:
            run, out, seconds = run_one(one, folder, dry_run=number % 3 == 0)
            problems = problems_of(one, run, out, seconds, options.strict_time)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        times.append(seconds)
        mistakes += len(set(one.lines)) + len(one.recipe.flags)
        if problems or options.only is not None:
            failed += bool(problems)
            print(f"--- draw {number}: {', '.join(one.names)} (wrong lines {one.lines})")
            print("\n".join("  " + text for text in problems))
            print("\n".join(f"{i + 1:4} {line}" for i, line in enumerate(one.text.splitlines())))
            print(run.stderr, flush=True)
    times.sort()
    print(f"{len(times)} configurations with {mistakes} mistakes, {failed} of them not as they should be; "
          f"median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
