"""The runs of docs/results/convergence.md: the list of them, and the command of each. Used by convergence.py and
page.py.

A cell is one training run: a model, a seed of its initial weights, a layout, a dtype and an optimizer, trained by Titan
or by torchtitan v0.2.2. All cells of a model see the same tokens in the same steps.
"""

import dataclasses
import itertools

SEEDS = (42, 43, 44)
ROWS = 2  # of the global batch


@dataclasses.dataclass(frozen=True)
class Model:
    """Changes to the flavor "debugmodel", and the length of training."""
    title: str
    flags: tuple
    seq_len: int
    steps: int
    tail: int  # the final loss is the mean over this many last steps
    shape: tuple = (256, 6, 16)  # dim, layers, heads
    lr: float = 8e-4             # of AdamW


MODELS = {
    "debug": Model("debug model (6 million parameters)", (), 128, 1000, 50),
    "30M": Model("30M Llama (dim 512, 8 layers, 8 heads of 64)", ("--model.dim", 512, "--model.n_layers", 8, "--model.n_heads", 8),
                 64, 300, 30, (512, 8, 8)),
    "tiny": Model("tiny model (dim 64, 2 layers, 4 heads)", ("--model.dim", 64, "--model.n_layers", 2, "--model.n_heads", 4),
                  64, 120, 20, (64, 2, 4), 4e-3),
}
LAYOUTS = {
    "1 rank": (1, ()),
    "FSDP 2": (2, ("--parallelism.data_parallel_shard_degree", 2)),
    "TP 2": (2, ("--parallelism.tensor_parallel_degree", 2)),
    "PP 2": (2, ("--parallelism.pipeline_parallel_degree", 2)),
    "CP 2": (2, ("--parallelism.context_parallel_degree", 2)),
}
FLOAT32 = ("--training.mixed_precision_param", "float32")
NUMBERS = {
    "fp32": FLOAT32,
    "bf16": ("--training.mixed_precision_param", "bfloat16"),
    "float8": (*FLOAT32, "--model.converters", "quantize.linear.float8", "--quantize.linear.float8.emulate"),
    "MX": (*FLOAT32, "--model.converters", "quantize.linear.mx", "--quantize.linear.mx.recipe_name", "mxfp8_emulated"),
}
OPTIMIZERS = {
    "AdamW": lambda lr: ("--optimizer.name", "AdamW", "--optimizer.lr", lr),
    "Muon": lambda lr: ("--optimizer.name", "Muon", "--optimizer.lr", 0.02, "--optimizer.adamw_lr", lr),
}
WARMUP = 20


@dataclasses.dataclass(frozen=True)
class Cell:
    model: str
    seed: int = SEEDS[0]
    layout: str = "1 rank"
    numbers: str = "fp32"
    optimizer: str = "AdamW"
    trainer: str = "Titan"

    def __str__(self):
        return ", ".join(map(str, dataclasses.astuple(self)))

    @property
    def file(self):
        return "-".join(str(part).replace(" ", "") for part in dataclasses.astuple(self)) + ".json"

    @property
    def ranks(self):
        return LAYOUTS[self.layout][0]

    def but(self, **changes):
        return dataclasses.replace(self, **changes)


def model_flags(cell):
    """The settings that determine the initial weights."""
    model = MODELS[cell.model]
    return ["--job.config_file", "train_configs/debug_model.toml", "--device.name", "cpu", *model.flags, "--debug.seed", cell.seed,
            "--training.seq_len", model.seq_len]


def train_flags(cell):
    """Flags of `titan train`, except the folder."""
    local = ROWS // 2 if cell.layout == "FSDP 2" else ROWS
    model = MODELS[cell.model]
    return [*model_flags(cell), "--training.steps", model.steps, "--training.global_batch_size", ROWS, "--training.local_batch_size",
            local, "--lr_scheduler.warmup_steps", WARMUP, "--metrics.log_freq", 1, "--metrics.loggers", "jsonl",
            "--metrics.no_enable_tensorboard", *LAYOUTS[cell.layout][1], *NUMBERS[cell.numbers],
            *OPTIMIZERS[cell.optimizer](model.lr)]


def standard(model):
    """Three seeds of the plain run; each other layout, dtype and optimizer once; torchtitan's curves. Muon comes first,
    because it takes longest. Of the larger model only the full plan has it, because Muon's matrix products take ten
    times as long as the step's."""
    plain = Cell(model)
    return [*([plain.but(optimizer="Muon")] if model != "30M" else []), *(plain.but(seed=seed) for seed in SEEDS),
            *(plain.but(layout=layout) for layout in list(LAYOUTS)[1:]), *(plain.but(numbers=numbers) for numbers in list(NUMBERS)[1:]),
            *(plain.but(numbers=numbers, trainer="torchtitan") for numbers in ("fp32", "bf16"))]


def full(model):
    """All combinations, and torchtitan's curves for each seed."""
    crossed = [Cell(model, *parts) for parts in itertools.product(SEEDS, LAYOUTS, NUMBERS, OPTIMIZERS)]
    return crossed + [Cell(model, seed, numbers=numbers, trainer="torchtitan") for seed in SEEDS for numbers in ("fp32", "bf16")]


PLANS = {
    "quick": lambda: [cell for cell in standard("tiny") if cell.trainer == "Titan"],
    "standard": lambda: standard("debug") + standard("30M"),
    "full": lambda: full("debug") + full("30M"),
}


def shown(plan):
    """The cells on a plan's page, if they have results: the plan's own, and those of the full plan."""
    return list(dict.fromkeys(PLANS[plan]() + (PLANS["full"]() if plan == "standard" else [])))
