"""Checks the documentation against the program: links and anchors exist, blocks of TOML are accepted and have an effect, keys
and components that it names exist."""

import collections
import functools
import json
import os
import re
import subprocess
import sys
import tomllib

from harness import ROOT, TITAN, Case, main, thorough, titan

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "AGENTS.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
ANYWHERE = ("train", "--dry-run", "--elsewhere", "--world-size", "64")


@functools.cache
def keys_of_core():
    return set(re.findall(r"--([a-z_]+(?:\.[a-z0-9_]+)+)", titan("train", "--help", "all").stdout.replace("[no_]", "")))


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", FENCED.sub("", text))


def anchors(page):
    """Anchors of headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *#*$", FENCED.sub("", page.read_text()), re.M):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        found.add(next(f"{name}{end}" for end in ["", *(f"-{i}" for i in range(1, 99))] if f"{name}{end}" not in found))
    return found


def merged(base, more):
    for key, value in more.items():
        base[key] = merged(base.get(key, {}), value) if isinstance(value, dict) else value
    return base


def to_toml(table, path=()):
    """TOML text of keys and tables without dates."""
    flat = {key: value for key, value in table.items() if not isinstance(value, dict)}
    text = f"[{'.'.join(json.dumps(name) for name in path)}]\n" if path and (flat or not table) else ""
    text += "".join(f"{json.dumps(key)} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in flat.items())
    return text + "".join(to_toml(value, (*path, key)) for key, value in table.items() if isinstance(value, dict))


class DocsTest(Case):
    def test_links_lead_somewhere(self):
        wrong = []
        for page in PAGES:
            for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
                if "://" in target or target.startswith("mailto:"):
                    continue
                name, _, anchor = target.partition("#")
                goal = (page.parent / name).resolve() if name else page
                if not goal.exists() or (anchor and goal.suffix == ".md" and anchor not in anchors(goal)):
                    wrong.append(f"{page.relative_to(ROOT)}: {target}")
        self.assertEqual(wrong, [])

    @functools.cache
    def options_of(self, kind, name):
        run = titan("describe", kind, name, "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        return set(json.loads(run.stdout)["properties"])

    def is_of_a_component(self, key, components):
        """kind.option of one of the kind, kind.name or kind.name.option."""
        kind, *rest = key.split(".")
        names = [".".join(rest[:end]) for end in range(len(rest), 0, -1)]
        if name := next((name for name in names if name in components[kind]), None):
            options = rest[name.count(".") + 1:]
            return not options or options[0] in self.options_of(kind, name)
        return any(rest[0] in self.options_of(kind, name) for name in components[kind])

    @thorough
    def test_keys_that_are_named_exist(self):
        core = keys_of_core() | {key.rpartition(".")[0] for key in keys_of_core()}
        components = collections.defaultdict(list)
        for line in titan("list", "--files").stdout.splitlines()[1:]:
            components[line.split()[0]].append(line.split()[1])
        converters = {name for name in components["converter"] if "." in name}  # the names of v0.2.2 come first
        files = {"chat_template.jinja", "tokenizer.model", "model.safetensors"}
        checked, wrong = 0, []
        for page in PAGES:
            for code in re.findall(r"`([^`\n]+)`", FENCED.sub("", page.read_text())):
                found = re.fullmatch(r"(?:--)?(([a-z_]+)(?:\.[a-z0-9_]+)+)(?:[ =].*)?", code)
                if not found or found[1] in files or re.search(r"\.(toml|md|py|json|jsonl|cpp|h|bin|svg|yaml|lock|sbatch)$", found[1]):
                    continue
                key, section = found[1], found[2]
                if section not in components and not any(one.startswith(section + ".") for one in core):
                    continue
                checked += 1
                if key not in core and key not in converters and not (section in components and self.is_of_a_component(key, components)):
                    wrong.append(f"{page.name}: {code}")
        self.assertEqual(wrong, [])
        self.assertGreater(checked, 60)

    def test_guides_name_every_shipped_component(self):
        guides = {"model": "models", "logger": "observing", "watcher": "observing", "optimizer": "optimizers", "lr_scheduler": "optimizers",
                  "loss": "losses", "dataset": "data", "tokenizer": "data", "converter": "quantize", "parallelism": "choose_a_layout",
                  "activation_checkpoint": "activation_checkpointing", "pipeline_schedule": "pipeline_schedules"}
        page = (ROOT / "docs/guides/write_a_plugin.md").read_text()
        for line in titan("list", "--files").stdout.splitlines()[1:]:
            kind, name = line.split()[:2]
            self.assertRegex(page, rf"(?m)^\| (?:[\w, ]*, )?{kind}(?:, [\w, ]*)? \|", "a row of the kind in write_a_plugin.md")
            if kind in guides:
                self.assertRegex((ROOT / f"docs/guides/{guides[kind]}.md").read_text(), rf"(?<![\w.]){re.escape(name)}(?![\w.])", kind)

    @thorough
    def test_pages_of_the_reference_say_what_the_program_says(self):
        run = subprocess.run([sys.executable, ROOT / "tools/reference_pages.py", "--check"], capture_output=True, text=True,
                             env={**os.environ, "TITAN": str(TITAN)})
        self.assertEqual(run.returncode, 0, run.stderr)

    @thorough
    def test_blocks_of_toml_have_an_effect(self):
        blocks = [(page, text) for page in PAGES for kind, text in FENCED.findall(page.read_text()) if kind == "toml"]
        self.assertGreater(len(blocks), 15)
        for page, text in blocks:
            block = tomllib.loads(text.replace("acme/signsgd", "Lion"))  # the plugin that the reader writes
            if not all(isinstance(value, dict) for value in block.values()):
                continue  # a task of titan evaluate
            with self.subTest(page=page.name, text=text):
                recipe = "mixtral_debug" if "experts" in text else "debug_model"
                job = tomllib.loads((ROOT / f"train_configs/{recipe}.toml").read_text())
                if "sources" in block.get("data", {}):
                    del job["training"]["dataset"], job["training"]["dataset_path"]
                path = self.write("job.toml", to_toml(merged(job, block)))
                run = titan(*ANYWHERE, "--job.config_file", path, "--job.dump_folder", self.out)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertNotIn("warning", run.stderr)


if __name__ == "__main__":
    main()
