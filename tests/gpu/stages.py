"""The stages of tests/gpu/run_all.py, in the order in which they run: the most informative per second come
first."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Stage:
    """One call of `checks.py NAME`. It may take `seconds`, and is skipped when less than `least` seconds remain."""
    name: str
    seconds: int
    least: int
    what: str


STAGES = (
    Stage("device", 40, 5, "the device opens; its properties; the GPU's unit tests"),
    Stage("first_steps", 50, 10, "ten steps of the debug model in fp32 and bf16, plain and fused, compared with the CPU's losses"),
    Stage("operations", 60, 15, "every operation, forward and backward, against float64; 20 repetitions bitwise"),
    Stage("float8", 20, 8, "float8 linear layers of three recipes and MXFP8, compared with their emulation"),
    Stage("graphs", 30, 10, "training with graphs on equals graphs off, bitwise"),
    Stage("recompute", 40, 10, "recomputation and offload modes give the losses of none; estimated and measured peak memory"),
    Stage("checkpoints", 40, 10, "asynchronous saves equal synchronous ones, bitwise; resume; export and generation as on the CPU"),
    Stage("communication", 40, 10, "NCCL with one rank; two ranks on one card are refused; flight records"),
    Stage("trace", 20, 8, "a Kineto trace has kernels of the GPU; memory snapshots"),
    Stage("families", 60, 12, "five steps of every other model family, compared with the CPU's losses"),
    Stage("sanitizer", 90, 20, "our kernels under compute-sanitizer: memory, races, synchronisation"),
    Stage("speed", 40, 15, "ceilings of this card; every operation at the shapes of an 8B layer"),
    Stage("train_1B", 60, 20, "1B at 8,192 tokens in bf16 and float8"),
    Stage("train_8B", 170, 30, "8B at 4,096 tokens in bf16 and float8"),
    Stage("torchtitan_8B", 130, 30, "the same 8B by torchtitan v0.2.2, compiled and eager, bf16 and float8"),
    Stage("torchtitan_1B", 100, 20, "the same 1B by torchtitan v0.2.2, compiled and eager, bf16 and float8"),
    Stage("curves", 45, 25, "loss curves of Titan and torchtitan v0.2.2 from the same weights and tokens"),
    Stage("ladder", 60, 10, "layouts of as many ranks as there are GPUs give one rank's losses"),
    Stage("profile_8B", 40, 15, "an 8B step by operation: time, share, gaps between kernels"),
)
DIAGNOSIS = Stage("diagnosis", 60, 15, "what failed, again under compute-sanitizer and with CUDA_LAUNCH_BLOCKING=1")
