#!/usr/bin/env python3
"""Converts a configuration of torchtitan 0.3, which is a Python function, to a TOML file for Titan.

    torchtitan_config.py --module llama3 --config llama3_8b > job.toml                        in the Python that has torchtitan
    torchtitan_config.py --module llama3 --config llama3_8b --training.steps 100 > job.toml   ... with torchtitan's own flags
    torchtitan_config.py --module llama3 --config llama3_8b --keep config.json                saves the configuration as JSON
    torchtitan_config.py --from config.json > job.toml                                        converts a saved one, in any Python

Most keys have had the same names since v0.2.2, whose TOML files Titan reads; the others are translated. Keys without a counterpart
whose value is not torchtitan's default are listed, with their values, in comments at the end of the file. Check the file with
`titan train --dry-run --job.config_file job.toml`. Standard library only.
"""

import dataclasses
import json
import sys

# {section of torchtitan: (Titan's section, keys that have the same name and meaning in both)}
SAME = {
    "profiler": ("profiling", ("enable_profiling", "save_traces_folder", "profile_freq", "profiler_active", "profiler_warmup",
                               "enable_memory_snapshot", "save_memory_snapshot_folder")),
    "metrics": ("metrics", ("log_freq", "enable_tensorboard", "disable_color_printing", "save_tb_folder", "save_for_all_ranks",
                            "enable_wandb")),
    "lr_scheduler": ("lr_scheduler", ("warmup_steps", "total_steps", "decay_ratio", "decay_type", "min_lr_factor")),
    "training": ("training", ("local_batch_size", "global_batch_size", "seq_len", "max_norm", "steps", "enable_cpu_offload", "dtype",
                              "mixed_precision_param", "mixed_precision_reduce", "gc_freq", "gc_debug")),
    "parallelism": ("parallelism", (
        "data_parallel_replicate_degree", "data_parallel_shard_degree", "fsdp_reshard_after_forward", "tensor_parallel_degree",
        "pipeline_parallel_degree", "module_fqns_per_model_part", "pipeline_parallel_first_stage_less_layers",
        "pipeline_parallel_last_stage_less_layers", "pipeline_parallel_layers_per_stage", "pipeline_parallel_schedule",
        "pipeline_parallel_schedule_csv", "pipeline_parallel_microbatch_size", "context_parallel_degree",
        "context_parallel_load_balancer", "expert_parallel_degree")),
    "checkpoint": ("checkpoint", (
        "enable", "folder", "interval", "initial_load_path", "initial_load_model_only", "initial_load_in_hf",
        "initial_load_in_hf_quantized", "last_save_model_only", "last_save_in_hf", "export_dtype", "keep_latest_k", "load_step",
        "exclude_from_loading", "enable_first_step_checkpoint", "create_seed_checkpoint", "load_only", "async_mode")),
    "compile": ("compile", ("enable", "components", "backend")),
    "comm": ("comm", ("init_timeout_seconds", "train_timeout_seconds", "trace_buf_size", "save_traces_folder",
                      "save_traces_file_prefix", "mode")),
    "validator": ("validation", ("enable", "freq", "steps")),
    "debug": ("debug", ("seed", "deterministic", "deterministic_warn_only", "moe_force_load_balance", "detect_anomaly")),
    "activation_checkpoint": ("activation_checkpoint", ("preserve_rng_state", "determinism_check", "debug")),
}
LOADER = ("num_workers", "persistent_workers", "pin_memory", "prefetch_factor")
# {(section, key) of torchtitan: (Titan's section, Titan's key, function from torchtitan's value to Titan's)}. A result of None leaves
# the key at Titan's default.
MOVED = {
    ("training", "disable_cuda_graphs"): ("compile", "graphs", lambda value: False if value else None),
    ("compile", "enable_async_tensor_parallel"): ("parallelism", "enable_async_tensor_parallel", lambda value: value or None),
    ("debug", "print_config"): ("job", "print_config", lambda value: value or None),
    ("debug", "save_config_file"): ("job", "save_config_file", lambda value: value or None),
    ("activation_checkpoint", "force_recompute_mm_shapes_by_fqns"): (
        "activation_checkpoint", "per_op_sac_force_recompute_mm_shapes_by_fqns", lambda value: value),
}
# Keys of torchtitan without a counterpart, with the values at which they have no effect; other values are listed as not carried over.
SILENT = {
    "profiler": {"profiler_repeat": None, "profiler_skip_first": None, "profiler_skip_first_wait": None, "memory_snapshot_freq": None,
                 "memory_snapshot_max_entries": 1000000, "trace_post_processor": None},
    "parallelism": {"enable_sequence_parallel": True, "spmd_backend": "spmd_types", "enable_fsdp_symm_mem": False,
                    "context_parallel_ptrr_mask_key": None},
    "debug": {"spmd_typechecking": False, "batch_invariant": False, "enable_structured_logging": True},
    "override": {"imports": []},
    "dataloader": {"infinite": True},
    "validator.dataloader": {"infinite": False},
}
MODES = {"FullAC": "full", "SelectiveAC": "selective", "MemoryBudgetAC": "memory_budget"}
# {part of a class name in torchtitan's model that shows that a converter was applied: Titan's converter}
CONVERTERS = {"Float8": "quantize.linear.float8", "MXFP8": "quantize.linear.mx", "LoRA": "lora", "NVFP4": None}


def plain(value):
    """A configuration as JSON values; a dataclass becomes an object with an additional key "class"."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"class": type(value).__qualname__, **{field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else getattr(value, "__qualname__", str(value))


def classes(value):
    """The classes of all dataclasses in a value of plain()."""
    found = {value["class"]} if isinstance(value, dict) and "class" in value else set()
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found |= classes(item)
    return found


def read_torchtitan(words):
    """The configuration that torchtitan makes from its command line `words`."""
    try:
        from torchtitan.config.manager import ConfigManager  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        sys.exit(f"torchtitan_config: error: cannot import torchtitan 0.3 ({error}); run this script with the Python that has it")
    config = ConfigManager().parse_args(words)
    spec = config.model_spec
    made = {field.name: plain(getattr(config, field.name)) for field in dataclasses.fields(config) if field.name != "model_spec"}
    return {"model_spec": {"name": spec.name, "flavor": spec.flavor, "classes": sorted(classes(plain(spec.model)))}, **made}


class Translation:
    """The sections of a TOML file, and the keys that could not be carried over."""

    def __init__(self, config):
        self.sections, self.left = {}, []
        self.config = config
        self.translate()

    def put(self, section, key, value):
        if value is not None:
            self.sections.setdefault(section, {})[key] = value

    def leave(self, key, value, why=""):
        self.left.append(f"{key} = {json.dumps(value)}" + (f": {why}" if why else ""))

    def leave_rest(self, name, section, known):
        silent = SILENT.get(name, {})
        for key, value in section.items():
            if key not in known and key != "class" and not (key in silent and silent[key] == value):
                self.leave(f"{name}.{key}", value)

    def translate(self):
        config = dict(self.config)
        spec = config.pop("model_spec")
        self.put("job", "dump_folder", config.pop("dump_folder"))
        self.put("model", "name", spec["name"])
        self.put("model", "flavor", spec["flavor"])
        self.put("model", "hf_assets_path", config.pop("hf_assets_path"))
        self.converters(spec.get("classes", []))
        self.optimizer(config.pop("optimizer"))
        self.data("training", "dataloader", config.pop("dataloader"))
        validator = config.get("validator") or {}
        if validator.get("dataloader"):
            self.data("validation", "validator.dataloader", validator["dataloader"])
        self.recompute(config.get("activation_checkpoint"))
        for name, (ours, keys) in SAME.items():
            section = config.pop(name, None) or {}
            for key in keys:
                self.put(ours, key, section.get(key))
            self.leave_rest(name, section, (*keys, "dataloader", *self.move(name, section)))
        loss = classes(config.pop("loss", None) or {})
        if loss - {"ChunkedLossWrapper.Config", "CrossEntropyLoss.Config"}:
            self.leave("loss", sorted(loss), "choose loss.name")
        if (tokenizer := config.pop("tokenizer", None)) and tokenizer.get("class") != "HuggingFaceTokenizer.Config":
            self.leave("tokenizer", tokenizer.get("class"), "choose tokenizer.name")
        for name, section in config.items():
            if isinstance(section, dict):
                self.leave_rest(name, section, ())
            elif section is not None:
                self.leave(name, section)

    def move(self, name, section):
        """Carries over the keys of a section that are in MOVED; returns them."""
        moved = {key: ours for (place, key), ours in MOVED.items() if place == name}
        for key, (place, our_key, value_of) in moved.items():
            self.put(place, our_key, value_of(section.get(key)))
        return moved

    def converters(self, names):
        found = []
        for part, ours in CONVERTERS.items():
            if not any(part in name for name in names):
                continue
            if ours:
                found.append(ours)
            section = ours if ours and "." in ours else f"converter.{ours}"
            self.leave("model", part, f"set its options in [{section}]; see `titan describe converter {ours}`" if ours
                       else "Titan has no such converter")
        if found:
            self.put("model", "converters", found)

    def optimizer(self, section):
        groups = section.get("param_groups", [])
        if len(groups) != 1 or groups[0]["pattern"] != ".*":
            self.leave("optimizer.param_groups", groups,
                       "only the last one is carried over; write [optimizer.groups], see docs/guides/optimizers.md")
        if groups:
            options = dict(groups[-1]["optimizer_kwargs"])
            self.put("optimizer", "name", groups[-1]["optimizer_name"])
            for number, beta in enumerate(options.pop("betas", ()), 1):
                self.put("optimizer", f"beta{number}", beta)
            for key, value in options.items():
                self.put("optimizer", key, value)
        self.put("optimizer", "implementation", section.get("implementation"))
        if section.get("optimizer_factory_kwargs_by_name"):
            self.leave("optimizer.optimizer_factory_kwargs_by_name", section["optimizer_factory_kwargs_by_name"])

    def data(self, ours, name, section):
        if section.get("class") == "ChatDataLoader.Config":
            self.leave(name, section["class"], "for conversations use the dataset 'messages'; see docs/start/finetuning.md")
            return
        for key in ("dataset", "dataset_path"):
            self.put(ours, key, section.get(key))
        for key in LOADER:
            self.put(f"{ours}.dataloader", key, section.get(key))
        self.leave_rest(name, section, ("dataset", "dataset_path", *LOADER))

    def recompute(self, section):
        kind = (section or {}).get("class", "").split(".")[0]
        if section and kind not in MODES:
            self.leave("activation_checkpoint", kind, "choose activation_checkpoint.mode")
            return
        self.put("activation_checkpoint", "mode", MODES.get(kind, "none"))
        if kind == "SelectiveAC":
            self.put("activation_checkpoint", "selective_ac_option", "op")

    def toml(self):
        lines = []
        for section, keys in self.sections.items():
            lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items()), ""]
        if self.left:
            lines += ["# Not carried over from torchtitan:", *(f"#   {line}" for line in self.left)]
        return "\n".join(lines).rstrip() + "\n"


def main():
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        sys.exit(__doc__)
    if words[0] == "--from" and len(words) == 2:
        with open(words[1], encoding="utf-8") as file:
            print(Translation(json.load(file)).toml(), end="")
        return
    keep = None
    if "--keep" in words:
        place = words.index("--keep")
        keep = words[place + 1:place + 2]
        del words[place:place + 2]
        if not keep:
            sys.exit("torchtitan_config: error: --keep needs a file name")
    config = read_torchtitan(words)
    if keep:
        with open(keep[0], "w", encoding="utf-8") as file:
            json.dump(config, file, indent=1)
            file.write("\n")
    else:
        print(Translation(config).toml(), end="")


if __name__ == "__main__":
    main()
