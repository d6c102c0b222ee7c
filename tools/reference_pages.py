#!/usr/bin/env python3
"""Writes docs/reference/keys.md, plugins.md and commands.md and the table in docs/start/from_torchtitan.md from the help texts of the
built program, and train_configs/titan.schema.json.

    tools/reference_pages.py            writes the pages
    tools/reference_pages.py --check    fails and names the pages that would change (ctest -R end_to_end.docs)

The variable TITAN is the path of the program; default: build/release/bin/titan. Every plugin must be built. Standard library only.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TITAN = os.environ.get("TITAN", ROOT / "build/release/bin/titan")
MADE = "Written by `tools/reference_pages.py` from the help texts of the program.\n"
# components that exist only on machines with a certain library; left out of the pages
OPTIONAL = {("dataset", "parquet"), ("device", "cuda")}
KINDS = ("model", "converter", "parallelism", "pipeline_schedule", "activation_checkpoint", "compile_backend", "optimizer", "lr_scheduler",
         "loss", "dataset", "tokenizer", "chat_template", "logger", "watcher", "device")
DIFFERENT = {"comm.mode": "`local_tensor` is not built yet",
             "parallelism.context_parallel_load_balancer": "`ptrr` is not built yet",
             "parallelism.expert_parallel_comm_backend": "`deepep` is not built yet",
             "compile.backend": "`inductor` means `fused`",
             "memory_estimation.disable_fake_mode": "only `false`",
             "optimizer.name": "the same",
             "optimizer.early_step_in_backward": "the same",
             "quantize.linear.mx.mxfp8_dim1_cast_kernel_choice": "accepted, no effect",
             "training.dataloader.persistent_workers": "accepted, no effect",
             "validation.dataloader.persistent_workers": "accepted, no effect"}
# sections of torchtitan whose keys are options of a plugin in Titan: the kind and name of the plugin
OWNERS = {"optimizer": ("optimizer", "AdamW"), "lr_scheduler": ("lr_scheduler", "warmup_stable_decay")}


def titan(*words):
    run = subprocess.run([TITAN, *words], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    if run.returncode:
        sys.exit(f"error: titan {' '.join(words)} failed with exit code {run.returncode}")
    return run.stdout


def code(value):
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def allowed(option):
    types = option.get("type", "string")
    types = [types] if isinstance(types, str) else types
    words = option.get("enum") or option.get("x-titan-choices")
    if words:
        return " ".join(f"`{word}`" for word in words if word is not None)
    kind = option.get("x-titan-type") or " or ".join(name for name in types if name != "null")
    if kind == "array":
        items = option.get("items", {})
        inner = items.get("enum")
        kind = "list of " + (" ".join(f"`{word}`" for word in inner) if inner else f"{items.get('type', 'string')}s")
    limits = [f"{sign} {option[name]}" for name, sign in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
              if name in option]
    return " ".join([kind, *limits])


def rows(schema, path=""):
    for name, option in schema.get("properties", {}).items():
        if option.get("type") == "object" or "properties" in option:
            yield from rows(option, f"{path}{name}.")
        else:
            yield path + name, option


def table(schema, head="key"):
    lines = [f"| {head} | default | allowed | |", "|---|---|---|---|"]
    for name, option in rows(schema):
        default = option.get("default")
        lines.append(f"| `{name}` | {'unset' if default is None else code(default)} | {cell(allowed(option))} | {cell(option.get('description', ''))} |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def sections():
    found = re.findall(r"^\[([a-z_]+)\]$", titan("train", "--help", "all"), re.M)
    return list(dict.fromkeys(found)), set(KINDS)


def keys_page():
    names, kinds = sections()
    help_text = titan("train", "--help", "all")
    text = ("# Keys of a configuration\n\nEvery key is also a flag: `--section.key VALUE`. A boolean needs no value, and is false with "
            f"`no_` before the key.\nThe options of plugins are in [plugins](plugins.md). {MADE}")
    for name in names:
        if name in kinds:
            text += f"\n## {name}\n\n{kind_section(help_text, name)}"
            continue
        schema = json.loads(titan("describe", name, "--json"))
        body = table(schema)
        if body:
            text += f"\n## {name}\n\n{body}"
    return text


def kind_section(help_text, section):
    """The keys of core in a section that also is a kind of plugin, without those of the plugin."""
    lines = ["| key | default | |", "|---|---|---|"]
    block = re.search(rf"^\[{section}\]\n(.*?)(?:^\[|\Z)", help_text, re.M | re.S)[1]
    for flag, body in re.findall(r"^  --([a-z_.\[\]0-9]+)\n((?: {6}.*\n?)+)", block, re.M):
        found = re.fullmatch(r"(.*) \((.*); default (.*)\)", " ".join(body.split()))
        default = found[3] if found[3] == "unset" else f"`{found[3]}`"
        lines.append(f"| `{flag.replace('[no_]', '').partition('.')[2]}` | {default} | {cell(found[1])} |")
    where = f"`[{section}.<name>]`" if section == "parallelism" else "the same section"
    return "\n".join(lines) + f"\n\nThe options of the chosen plugin are keys of {where}: [plugins](plugins.md#{section}).\n"


def installed():
    found = {}
    for line in titan("list", "--files").splitlines()[1:]:
        kind, name = line.split()[:2]
        found.setdefault(kind, []).append(name)
    return found


def plugins_page():
    found = installed()
    text = f"# Plugins and their options\n\nThe shipped components by kind. `titan describe KIND NAME` shows the same of every installed one. {MADE}"
    for kind in KINDS:
        text += f"\n## {kind}\n"
        for name in sorted(found.get(kind, []), key=str.lower):
            if (kind, name) in OPTIONAL:
                continue
            schema = json.loads(titan("describe", kind, name, "--json"))
            text += f"\n### {name}\n\n{cell(schema.get('description', ''))}\n"
            body = table(schema, "option")
            text += f"\n{body}" if body else ""
            if kind == "model":
                text += "\nFlavors: " + ", ".join(f"`{flavor}`" for flavor in schema["x-titan-flavors"]) + ".\n"
    return text


def commands_page():
    listed = re.findall(r"^  ([a-z-]+) +(.+)$", titan("--help"), re.M)
    text = f"# Commands\n\n{MADE}"
    for name, summary in listed:
        shown = titan("train", "--help") if name == "train" else titan("help", name)
        text += f"\n## titan {name}\n\n{summary[0].upper()}{summary[1:]}.\n\n```\n{shown.strip()}\n```\n"
    return text


def reference_defaults():
    """The keys of torchtitan v0.2.2 and their defaults, from tests/core/config/reference_defaults.h."""
    text = (ROOT / "tests/core/config/reference_defaults.h").read_text()
    return [(key, json.loads(default)) for key, default in re.findall(r'\{"([a-z_0-9.]+)",\s*R"\((.*?)\)"\}', text)]


def torchtitan_table():
    names, kinds = sections()
    ours = {}
    for name in names:
        if name not in kinds:
            for key, option in rows(json.loads(titan("describe", name, "--json"))):
                ours[f"{name}.{key}"] = option
    lines = ["| key of torchtitan v0.2.2 | default | in Titan |", "|---|---|---|"]
    for key, default in reference_defaults():
        option = ours.get(key, {})
        section = key.partition(".")[0]
        says = option.get("description", "")
        if key in DIFFERENT:
            status = DIFFERENT[key]
        elif says.startswith(("No effect", "Ignored")):
            status = "accepted, no effect"
        elif key.startswith("quantize."):
            status = f"option of converter `{key.rpartition('.')[0]}`"
        elif section in OWNERS:
            status = f"option of {OWNERS[section][0]} `{OWNERS[section][1]}`" if not option else "the same"
        else:
            status = "the same"
        lines.append(f"| `{key}` | {'unset' if default is None else code(default)} | {status} |")
    return "\n".join(lines) + "\n"


def job_schema():
    """The schema of configurations; none where a plugin is missing because its library is."""
    there = {(kind, name) for kind, names in installed().items() for name in names}
    return {ROOT / "train_configs/titan.schema.json": titan("schema")} if OPTIONAL <= there else {}


def pages():
    start = ROOT / "docs/start/from_torchtitan.md"
    text = start.read_text()
    begin, end = "<!-- keys -->\n", "<!-- end of keys -->"
    head, _, rest = text.partition(begin)
    return {**job_schema(), ROOT / "docs/reference/keys.md": keys_page(), ROOT / "docs/reference/plugins.md": plugins_page(),
            ROOT / "docs/reference/commands.md": commands_page(), start: head + begin + torchtitan_table() + end + rest.partition(end)[2]}


def main():
    made = pages()
    if sys.argv[1:] == ["--check"]:
        old = [str(path.relative_to(ROOT)) for path, text in made.items() if not path.exists() or path.read_text() != text]
        sys.exit("error: these pages differ from the help texts of the program; run tools/reference_pages.py: " + ", ".join(old) if old else 0)
    if sys.argv[1:]:
        sys.exit(__doc__)
    for path, text in made.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
