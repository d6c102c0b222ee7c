"""Trains a Llama 3 with torchtitan v0.2.2's own trainer on one device and prints its speed for titan bench --against.

    python3 tests/gpu/torchtitan_side.py --flavor 1B --seq-len 8192 --batch 2 [--compile] [--float8 tensorwise] [--wheels DIR]
    python3 tests/gpu/torchtitan_side.py --device cpu --flavor debugmodel --seq-len 64 --batch 2 --dtype float32

--drive trainer constructs torchtitan.train.Trainer from a JobConfig and runs the body of its training loop. --drive
parts calls model, converter, optimizer, schedule, clipping and loss without that class. --drive auto (default) uses the
trainer, or the parts if the trainer fails before the end of its first step. On one device torchtitan computes in
bfloat16 under autocast; with --layout fsdp it casts by FSDP over a group of one, as Titan does.

Tokens are random, the same for a seed, or --tokens: bare int32 ids, rows of seq_len + 1. Each step takes the next
--batch rows, and starts again at the end. Titan reads the same rows in the same order with

    --training.dataset tokens --training.dataset_path FILE --dataset.tokens.format raw --dataset.tokens.dtype int32
    --dataset.tokens.chunk_tokens <seq_len + 1>

--init starts from the safetensors of a Hugging Face folder (`titan convert to-hf`), or of one with torchtitan's names.

The script waits for the GPU only at both ends of the measured steps; events between the steps measure the time of each.
It needs PyTorch and the wheels of fetch_wheels.sh, which it unpacks from --wheels if torchtitan is not installed. Exit
code 3: out of memory.
"""

import argparse
import atexit
import contextlib
import dataclasses
import importlib.util
import json
import os
import pathlib
import shutil
import socket
import statistics
import sys
import tempfile
import time
import traceback
import types
import warnings
import zipfile

LLAMA_32_1B = dict(dim=2048, n_layers=16, n_heads=32, n_kv_heads=8, ffn_dim_multiplier=1.5, multiple_of=256, rope_theta=500000)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flavor", default="debugmodel", help="a flavor of torchtitan's llama3, or 1B: Llama 3.2 1B")
    parser.add_argument("--untied", action="store_true", help="1B: a separate output layer, as in torchtitan's Llama 3")
    parser.add_argument("--seq-len", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=1, help="sequences in a step")
    parser.add_argument("--warmup", type=int, default=int(os.environ.get("TITAN_BENCH_WARMUP", 3)), help="steps not measured")
    parser.add_argument("--steps", type=int, default=int(os.environ.get("TITAN_BENCH_STEPS", 10)), help="measured steps")
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="bfloat16", help="mixed_precision_param")
    parser.add_argument("--weights", choices=["bfloat16", "float32"], default="float32", help="training.dtype")
    parser.add_argument("--float8", choices=["none", "tensorwise", "rowwise"], default="none")
    parser.add_argument("--filter-fqns", nargs="*", default=[], help="layers without float8, such as output")
    parser.add_argument("--compile", action="store_true", help="blocks and loss, as [compile] does")
    parser.add_argument("--ac", choices=["none", "selective", "full"], default="none")
    parser.add_argument("--ac-option", default="op", help="selective_ac_option: op, or N for every N-th block")
    parser.add_argument("--layout", choices=["amp", "fsdp"], default="amp")
    parser.add_argument("--lr", type=float, default=8e-4)
    parser.add_argument("--lr-warmup", type=int, default=5, help="this and the schedule are those of debug_model.toml")
    parser.add_argument("--decay-ratio", type=float, default=0.8)
    parser.add_argument("--min-lr-factor", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--tokens", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--init", type=pathlib.Path, metavar="FILE_OR_FOLDER")
    parser.add_argument("--loss-log", type=pathlib.Path, metavar="FILE", help="JSON lines of step and loss, written at the end")
    parser.add_argument("--kernels", type=pathlib.Path, metavar="FILE", help="time by kernel, of 2 more profiled steps")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument("--drive", choices=["auto", "trainer", "parts"], default="auto")
    parser.add_argument("--wheels", type=pathlib.Path, metavar="DIR", help="of fetch_wheels.sh")
    arguments = parser.parse_args()
    if arguments.warmup < 1 or arguments.steps < 1:
        parser.error("--warmup and --steps must be at least 1: the first step makes the optimizer's states")
    return arguments


FOLDERS = []


def temporary_folder(name):
    """A temporary folder, removed when the process ends or execs another program."""
    FOLDERS.append(tempfile.mkdtemp(prefix=f"titan_{name}_"))
    return FOLDERS[-1]


def remove_folders():
    for folder in FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)


def find_torchtitan(wheels):
    """Unpacks the wheels into a temporary folder, unless torchtitan is installed."""
    if importlib.util.find_spec("torchtitan") is not None:
        return
    if wheels is None:
        sys.exit("torchtitan is not installed; give --wheels DIR, as tests/gpu/fetch_wheels.sh fills it")
    files = sorted(wheels.glob("*.whl"))
    if not any(file.name.startswith("torchtitan-") for file in files):
        sys.exit(f"no wheel of torchtitan is in '{wheels}'; fill it by tests/gpu/fetch_wheels.sh")
    folder = temporary_folder("wheels")
    for file in files:
        with zipfile.ZipFile(file) as wheel:
            wheel.extractall(folder)
    # after the installed packages, so that nothing of the machine is replaced
    sys.path.append(folder)
    # processes that compile import from there too
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), folder]))


def set_environment():
    """Variables that torchrun would set for one process."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", GROUP_RANK="0", MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port))
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")  # as in torchtitan's run_train.sh


def use_cpu():
    """torchtitan asks torch for its accelerator and then for properties of a GPU; on a CPU these are made
    up."""
    import torch
    torch._utils._get_available_device_type = lambda: "cpu"
    import torchtitan.tools.utils as tools
    tools.device_type = "cpu"
    tools.device_module = types.SimpleNamespace(
        set_device=lambda device: None, current_device=lambda: 0, synchronize=lambda *_: None, get_device_name=lambda *_: "CPU",
        get_device_properties=lambda *_: types.SimpleNamespace(total_memory=1 << 40), memory_stats=lambda *_: {},
        reset_peak_memory_stats=lambda *_: None, empty_cache=lambda: None)


def stand_in_for_texts():
    """torchtitan's loader of texts is not used. If it cannot be imported, an empty module replaces it."""
    try:
        import torchtitan.hf_datasets.text_datasets  # noqa: F401
    except Exception as error:  # a package of another version may raise anything
        print(f"torchtitan's loader of texts cannot be imported ({error}); it is not needed", file=sys.stderr)
        module = types.ModuleType("torchtitan.hf_datasets.text_datasets")
        module.__getattr__ = lambda name: None if name.startswith("__") else (lambda *args, **kwargs: None)
        sys.modules[module.__name__] = module


class Rows:
    """Batches of `batch` rows of seq_len + 1 tokens, without end: ({"input"}, labels) as torchtitan's loaders give them."""

    def __init__(self, arguments, vocabulary):
        import torch
        width = arguments.seq_len + 1
        if arguments.tokens:
            size = arguments.tokens.stat().st_size
            if size == 0 or size % (4 * width):
                sys.exit(f"'{arguments.tokens}' has {size} bytes, which are no rows of {width} ids of 4 bytes")
            rows = torch.from_file(str(arguments.tokens), size=size // 4, dtype=torch.int32).view(-1, width).long()
            if int(rows.min()) < 0 or int(rows.max()) >= vocabulary:
                sys.exit(f"'{arguments.tokens}' has ids from {rows.min()} to {rows.max()}, the vocabulary has {vocabulary}")
        else:
            generator = torch.Generator().manual_seed(arguments.seed)
            rows = torch.randint(0, vocabulary, (8 * arguments.batch, width), generator=generator)
        self.rows, self.batch = rows, arguments.batch

    def __iter__(self):
        import torch
        position = 0
        while True:
            batch = self.rows[torch.arange(position, position + self.batch) % len(self.rows)]
            position += self.batch
            yield {"input": batch[:, :-1].contiguous()}, batch[:, 1:].contiguous()


def job_config(arguments, folder):
    from torchtitan.config import JobConfig
    config = JobConfig()
    config.job.dump_folder = folder
    config.model.name, config.model.flavor, config.model.hf_assets_path = "llama3", arguments.flavor, folder
    config.metrics.log_freq = 1 << 30  # step 1 is always logged; logging waits for the GPU
    config.metrics.disable_color_printing = True
    config.optimizer.lr = arguments.lr
    config.optimizer.implementation = "fused"
    config.lr_scheduler.warmup_steps = arguments.lr_warmup
    config.lr_scheduler.decay_ratio = arguments.decay_ratio
    config.lr_scheduler.decay_type = "linear"
    config.lr_scheduler.min_lr_factor = arguments.min_lr_factor
    config.training.local_batch_size, config.training.seq_len = arguments.batch, arguments.seq_len
    config.training.max_norm, config.training.steps = 1.0, arguments.warmup + arguments.steps
    config.training.dtype, config.training.mixed_precision_param = arguments.weights, arguments.dtype
    config.activation_checkpoint.mode = arguments.ac
    config.activation_checkpoint.selective_ac_option = arguments.ac_option
    config.compile.enable = arguments.compile
    config.comm.trace_buf_size = 0
    config.debug.seed = arguments.seed
    if arguments.float8 != "none":
        config.model.converters = ["quantize.linear.float8"]
        float8 = config.quantize.linear.float8
        float8.filter_fqns = list(arguments.filter_fqns)
        # without a recipe torchao uses one scale per tensor
        float8.recipe_name = None if arguments.float8 == "tensorwise" else arguments.float8
        float8.emulate = arguments.device == "cpu"
    return config


def train_spec(arguments):
    """torchtitan's own specification of Llama 3, without tokenizer and loader of texts, and with the
    flavor 1B."""
    from torchtitan.models.llama3 import TransformerModelArgs, get_train_spec
    from torchtitan.models.llama3.model.args import RoPEScalingArgs
    from torchtitan.models.llama3.model.model import Transformer
    spec = get_train_spec()
    flavors = {name: dataclasses.replace(flavor) for name, flavor in spec.model_args.items()}
    is_tied = False
    if arguments.flavor == "1B" and "1B" not in flavors:
        flavors["1B"] = TransformerModelArgs(**LLAMA_32_1B, rope_scaling_args=RoPEScalingArgs(scaling_factor=32.0))
        is_tied = not arguments.untied
    if arguments.flavor not in flavors:
        sys.exit(f"--flavor {arguments.flavor}: torchtitan's Llama 3 has {', '.join(flavors)}")

    class TiedTransformer(Transformer):
        """Ties the output layer's weight to the embedding's, once both are on their device."""

        def init_weights(self, buffer_device=None):
            super().init_weights(buffer_device)
            self.tok_embeddings.weight = self.output.weight

    def loader(**_):
        return Rows(arguments, flavors[arguments.flavor].vocab_size)

    return dataclasses.replace(spec, model_args=flavors, model_cls=TiedTransformer if is_tied else Transformer,
                               build_tokenizer_fn=None, build_dataloader_fn=loader), is_tied


def force_fsdp():
    """torchtitan shards only from two ranks on; this shards over a group of one, for its casts."""
    from torchtitan.distributed import ParallelDims
    exists = ParallelDims._mesh_exist
    ParallelDims.fsdp_enabled = property(lambda self: True)
    ParallelDims._mesh_exist = lambda self, name, degree: name == "fsdp" or exists(self, name, degree)


class OfTrainer:
    """torchtitan's Trainer. In addition, losses stay on the device and are kept."""

    def __init__(self, arguments, folder):
        import torchtitan.protocols.train_spec as specs
        from torchtitan.train import Trainer
        self.spec, self.is_tied = train_spec(arguments)
        specs.register_train_spec("llama3", self.spec)
        self.losses = losses = []

        class Keeping(Trainer):
            def forward_backward_step(self, **inputs):
                loss = super().forward_backward_step(**inputs)
                losses.append(loss.detach())
                return loss

        self.trainer = Keeping(job_config(arguments, folder))
        self.model, self.device = self.trainer.model_parts[0], self.trainer.device
        self.arguments = self.trainer.model_args
        self.flops_per_token = self.trainer.metrics_processor.num_flops_per_token
        self.batches = self.trainer.batch_generator(self.trainer.dataloader)

    def step(self):
        """The body of the loop in Trainer.train, without checkpoints, validation and profiler, which are off."""
        self.trainer.step += 1
        self.trainer.gc_handler.run(self.trainer.step)
        self.trainer.train_step(self.batches)

    def close(self):
        self.trainer.close()


class OfParts:
    """The parts that the Trainer calls on one device, in its order."""

    def __init__(self, arguments, folder):
        import torch
        from torchtitan.config import TORCH_DTYPE_MAP
        from torchtitan.distributed import ParallelDims, utils
        from torchtitan.protocols.model_converter import build_model_converters
        from torchtitan.tools.utils import set_default_dtype
        self.torch, self.utils = torch, utils
        config = job_config(arguments, folder)
        spec, self.is_tied = train_spec(arguments)
        self.device = torch.device("cuda:0" if arguments.device == "cuda" else "cpu")
        if arguments.device == "cuda":
            torch.cuda.set_device(self.device)
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if arguments.device == "cuda" else "gloo")
        dims = ParallelDims(dp_replicate=1, dp_shard=1, cp=1, tp=1, pp=1, ep=1, etp=1, world_size=1)
        torch.manual_seed(arguments.seed)
        self.arguments = spec.model_args[arguments.flavor]
        self.arguments.update_from_config(config)
        with torch.device("meta"), set_default_dtype(TORCH_DTYPE_MAP[arguments.weights]):
            model = spec.model_cls(self.arguments)
        build_model_converters(config, dims).convert(model)
        self.flops_per_token = self.arguments.get_nparams_and_flops(model, arguments.seq_len)[1]
        self.loss = spec.build_loss_fn(config)
        model = spec.parallelize_fn(model, dims, config)
        model.to_empty(device=self.device)
        with torch.no_grad():
            model.init_weights()
        self.model = model.train()
        self.optimizers = spec.build_optimizers_fn([model], config.optimizer, dims)
        self.schedule = spec.build_lr_schedulers_fn(self.optimizers, config.lr_scheduler, config.training.steps)
        self.cast = utils.maybe_enable_amp(dims, arguments.dtype, arguments.device)
        self.batches = iter(spec.build_dataloader_fn())
        self.losses = []

    def step(self):
        self.optimizers.zero_grad()
        inputs, labels = next(self.batches)
        tokens, labels = inputs["input"].to(self.device), labels.to(self.device)
        with self.cast:
            prediction = self.model(tokens)
            loss = self.loss(prediction, labels) / labels.numel()
        del prediction
        loss.backward()
        self.utils.clip_grad_norm_(list(self.model.parameters()), 1.0, foreach=True)
        self.optimizers.step()
        self.schedule.step()
        self.losses.append(loss.detach())

    def close(self):
        pass


def read_weights(source, arguments, is_tied):
    """Tensors of a safetensors file, or of all files in a folder, by torchtitan's names."""
    from safetensors import safe_open
    from torchtitan.models.llama3.model.state_dict_adapter import Llama3StateDictAdapter
    weights = {}
    files = sorted(source.glob("*.safetensors")) if source.is_dir() else [source]
    if not files:
        sys.exit(f"--init: no safetensors file is in '{source}'")
    for file in files:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            if metadata.get("TITAN_CONVENTION") == "titan" or "TITAN_XXH3_128" in metadata:
                sys.exit(f"--init: '{file}' holds rotary rows in Titan's order; convert it by titan convert to-hf")
            weights.update((name, opened.get_tensor(name)) for name in opened.keys())
    if "model.embed_tokens.weight" in weights:
        if is_tied:
            weights.setdefault("lm_head.weight", weights["model.embed_tokens.weight"])
        weights = Llama3StateDictAdapter(arguments, None).from_hf(weights)
    if is_tied and "output.weight" not in weights and "tok_embeddings.weight" in weights:
        weights["output.weight"] = weights["tok_embeddings.weight"]
    return weights


def load(training, source):
    import torch
    weights = read_weights(source, training.arguments, training.is_tied)
    with torch.no_grad():
        for name, parameter in training.model.named_parameters():
            name = name.replace("_orig_mod.", "").replace("_checkpoint_wrapped_module.", "")
            if name not in weights:
                sys.exit(f"--init: '{source}' has no tensor for {name}")
            local = parameter.to_local() if hasattr(parameter, "to_local") else parameter
            if local.shape != weights[name].shape:
                sys.exit(f"--init: {name} is {tuple(weights[name].shape)} in '{source}', {tuple(local.shape)} in the model")
            local.copy_(weights[name])


class Clock:
    """Ends of steps: events of the GPU, which are read at the end of the run, or the CPU's
    clock."""

    def __init__(self, device):
        import torch
        self.cuda = torch.cuda if device == "cuda" else None
        self.marks = []

    def wait(self):
        if self.cuda:
            self.cuda.synchronize()
        return time.perf_counter()

    def mark(self):
        if self.cuda:
            self.marks.append(self.cuda.Event(enable_timing=True))
            self.marks[-1].record()
        else:
            self.marks.append(time.perf_counter())

    def seconds(self):
        pairs = zip(self.marks, self.marks[1:])
        return [begin.elapsed_time(end) / 1e3 if self.cuda else end - begin for begin, end in pairs]


def peak_bytes(device):
    if device == "cuda":
        import torch
        return torch.cuda.max_memory_allocated()
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def write_kernels(training, arguments, file, steps=2):
    """{"steps", "seconds", "device_seconds", "rows": [[name, calls, seconds], ...]} of these steps, the longest first."""
    import torch
    from torch.profiler import ProfilerActivity
    is_cuda = arguments.device == "cuda"
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if is_cuda else [])
    clock = Clock(arguments.device)
    begin = clock.wait()
    with torch.profiler.profile(activities=activities, acc_events=True) as profile:
        for _ in range(steps):
            training.step()
        end = clock.wait()
    rows = {}
    for event in profile.events():
        if is_cuda and (event.device_type != torch.autograd.DeviceType.CUDA or event.is_user_annotation):
            continue
        seconds = (event.time_range.elapsed_us() if is_cuda else event.self_cpu_time_total) / 1e6
        calls, total = rows.get(event.name, (0, 0.0))
        rows[event.name] = (calls + 1, total + seconds)
    listed = sorted(([name, *row] for name, row in rows.items()), key=lambda row: -row[2])
    file.write_text(json.dumps({"steps": steps, "seconds": end - begin, "device_seconds": sum(row[2] for row in listed),
                                "rows": listed[:80]}))


def construct(arguments, folder):
    if arguments.drive == "parts":
        return OfParts(arguments, folder), "parts"
    return OfTrainer(arguments, folder), "Trainer"


def start_again_by_parts():
    """Starts a fresh process, in which the failed trainer holds no GPU memory."""
    traceback.print_exc()
    print("torchtitan's Trainer failed before its first step was done; going on by --drive parts", file=sys.stderr, flush=True)
    remove_folders()
    os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:False"  # some virtual machines cannot map memory in segments
    os.execv(sys.executable, [sys.executable, *sys.argv, "--drive", "parts"])


def run(arguments, folder, launched):
    import torch
    if arguments.layout == "fsdp":
        force_fsdp()
    try:
        training, driven = construct(arguments, folder)
        if arguments.init:
            load(training, arguments.init)
        to_first_step = time.time() - launched
        training.step()
    except Exception as error:
        if arguments.drive != "auto" or isinstance(error, torch.OutOfMemoryError):
            raise
        start_again_by_parts()
    print(json.dumps({"step": 1}), flush=True)
    for number in range(2, arguments.warmup + 1):
        training.step()
        print(json.dumps({"step": number}), flush=True)
    clock = Clock(arguments.device)
    begin = clock.wait()
    to_warm = time.time() - launched
    if arguments.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    clock.mark()
    for number in range(arguments.warmup + 1, arguments.warmup + arguments.steps + 1):
        training.step()
        clock.mark()
        print(json.dumps({"step": number}), flush=True)
    window = clock.wait() - begin
    peak, seconds = peak_bytes(arguments.device), clock.seconds()
    losses = [float(loss) for loss in training.losses]
    if arguments.loss_log:
        lines = [json.dumps({"step": step, "loss": loss}) for step, loss in enumerate(losses, 1)]
        arguments.loss_log.write_text("\n".join(lines) + "\n")
    if arguments.kernels:
        try:
            write_kernels(training, arguments, arguments.kernels)
        except Exception:  # the main result, the speed, is known already
            traceback.print_exc()
    median = statistics.median(seconds)
    per_step = arguments.batch * arguments.seq_len
    device = torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
    print(json.dumps({
        "tokens_per_second": per_step / median, "tokens_per_second_of_window": per_step * arguments.steps / window,
        "tokens_per_step": per_step, "step_seconds": seconds, "peak_bytes": peak, "to_first_step": to_first_step,
        "to_warm": to_warm, "ranks": 1, "device": device, "flops_per_token": training.flops_per_token,
        "parameters": sum(parameter.numel() for parameter in training.model.parameters()), "first_loss": losses[0],
        "last_loss": losses[-1], "drive": driven, "build": f"torchtitan 0.2.2, torch {torch.__version__}"}), flush=True)
    training.close()


def main():
    launched = time.time()
    atexit.register(remove_folders)
    arguments = parsed()
    find_torchtitan(arguments.wheels)
    warnings.filterwarnings("ignore")
    set_environment()
    import torch
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.device == "cpu":
        use_cpu()
    elif not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU; --device cpu is for trying this script")
    stand_in_for_texts()
    try:
        run(arguments, temporary_folder("torchtitan"), launched)
    except torch.OutOfMemoryError as error:
        print(f"out of memory: {str(error).splitlines()[0]}", file=sys.stderr)
        sys.exit(3)
    with contextlib.suppress(Exception):
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
