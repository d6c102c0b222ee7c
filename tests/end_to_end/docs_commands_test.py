"""Runs the commands of README, docs/start and docs/guides in a folder where the debug model has trained, page by page.
NEEDS lists the commands that a test cannot run, with the reason. Flags of all commands, run or not, exist."""

import collections
import functools
import os
import pathlib
import re
import shutil
import subprocess

from docs_test import FENCED, keys_of_core
from harness import HANG, ROOT, TITAN, Case, environment, main, thorough, titan

STARTS = re.compile(r"(?:\w+=\S* )*(?:titan|\./run_\w+\.sh|torchrun|srun|mpirun|python3?|git|export|tools/\S+|cmake|ctest|ninja) ?")
FIRST = "docs/start/first_run.md"  # saves the checkpoints that other pages read
PAGES = [FIRST, *sorted(str(page.relative_to(ROOT)) for page in [ROOT / "README.md", *(ROOT / "docs").glob("start/*.md"), *(ROOT / "docs").glob("guides/*.md")]
                        if str(page.relative_to(ROOT)) != FIRST)]
KINDS = ("model", "optimizer", "loss", "dataset", "tokenizer", "converter", "activation_checkpoint", "logger", "watcher", "device", "profiling",
         "quantize")
# regular expressions of commands that a test cannot run, and what they need
NEEDS = {
    r"\.\.\.|<\w+>|\b(?:FILE|IN OUT)\b": "the reader's own arguments",
    r"^git clone|^titan download|HF_TOKEN|^tools/setup|^tools/package|pip install": "a network",
    r"^\./run_tests\.sh|^\./run_train\.sh +#|^cmake|^ctest|^ninja": "a build: .ci/run and end_to_end.find_package",
    r"^torchrun|^srun": "a launcher: end_to_end.launch has the variables of each",
    r"--nnodes": "two nodes",
    r"^MLFLOW_TRACKING_URI": "a server: the long check mlflow",
    r"Llama-3|acme/signsgd|signsgd\.plugin": "weights or a plugin of the reader's",
    r"llama3_8b\.toml|my\.toml|train\.toml|\blr\.toml": "the reader's configuration, and ranks for it",
    r"llama\.cpp|serving/": "other programs: referee.gguf",
    r"_memory_viz": "PyTorch's viewer, started in the folder of a snapshot",
    r"outputs/first|step-1000|^titan .*\bruns/": "runs of the reader's",
    r"^titan top": "a run that trains meanwhile: end_to_end.top",
    r"> ~/\.": "folders of the reader's shell: end_to_end.completion_shells",
    r"^titan plugin (?:search|install|pack)": "an index of plugins: end_to_end.plugin_index",
    r"prompts\.jsonl|talks\.jsonl|^titan evaluate": "files of the reader's",
}


def commands_of(page):
    """The lines of a page's shell blocks without comments; a usage in brackets includes the content of the brackets."""
    for kind, text in FENCED.findall((ROOT / page).read_text()):
        if kind not in ("", "sh", "bash"):
            continue
        text = re.sub(r"\\\n\s*", " ", text)
        text = re.sub(r'(?m)^(titan [^"\n]*(?:"[^"\n]*"[^"\n]*)*"[^"\n]*)\n([^"\n]*")', r"\1 \2", text)  # a quotation of two lines
        for line in text.splitlines():
            line = re.sub(r"\s+#.*|\s{3,}\S.*$", "", re.sub(r"\[(--[^]]*)\]", r"\1", line)).strip()
            if STARTS.match(line):
                yield line


@functools.cache
def help_of(command):
    run = titan(command, "--help")
    return set(re.findall(r"--[a-z][a-z0-9_-]*", run.stdout))


@thorough
class DocsCommandsTest(Case):
    def workspace(self):
        """Programs, jobs and data as in a clone, with shortened sequences."""
        shutil.copytree(ROOT / "train_configs", self.folder / "train_configs")
        for recipe in (self.folder / "train_configs").glob("*debug*.toml"):
            recipe.write_text(re.sub(r"(?m)^seq_len = .*", "seq_len = 64", recipe.read_text()))
        (self.folder / "tests").mkdir()
        (self.folder / "tests/assets").symlink_to(ROOT / "tests/assets")
        start = re.sub(r'(?m)^"\$root/tools/setup\.sh".*\n', "", (ROOT / "run_train.sh").read_text())
        self.write("run_train.sh", start.replace("titan=build/release/bin/titan", f"titan={TITAN}")).chmod(0o755)
        return environment(PATH=f"{pathlib.Path(TITAN).parent}:{os.environ['PATH']}")

    def test_commands_of_pages_run(self):
        variables, ran = self.workspace(), collections.Counter()
        used = set()
        for page in PAGES:
            for command in commands_of(page):
                if reasons := {reason for pattern, reason in NEEDS.items() if re.search(pattern, command)}:
                    used |= reasons
                    continue
                with self.subTest(page=page, command=command):
                    # without a configuration titan takes that of its installation
                    short = re.sub(r"^titan train (?!.*config_file)", "titan train --training.seq_len 64 ", command)
                    run = subprocess.run(["bash", "-c", short], cwd=self.folder, env=variables, stdin=subprocess.DEVNULL, timeout=HANG,
                                         capture_output=True, text=True)
                    ran[page] += 1
                    self.assertEqual(run.returncode, 0, run.stderr[-2000:])
        print(", ".join(f"{page}: {count}" for page, count in ran.items()), flush=True)
        self.assertGreater(ran.total(), 20)
        self.assertEqual(set(NEEDS.values()) - used, set(), "rows of NEEDS that no command needs")

    def test_flags_of_commands_exist(self):
        pages = [*PAGES, *(str(page.relative_to(ROOT)) for page in (ROOT / "experiments").rglob("README.md"))]
        checked, wrong = 0, []
        for page in pages:
            for command in commands_of(page):
                words, (_, *own) = command.split(), re.split(r"\btitan |run_train\.sh", command, maxsplit=1)
                if not own or not re.match(r"(?:\w+=\S* )*(?:titan|\./run_train\.sh|torchrun|srun|cd) ", command):
                    continue
                names = {words[i + 1] for i, word in enumerate(words[:-1]) if word == "titan" or (word == "--" and "launch" in words)} or {"train"}
                known = set().union(*(help_of(name) for name in names if "/" not in name))
                for flag in re.findall(r"(?<=\s)--[a-z][\w./-]*", " " + own[0]):
                    checked += 1
                    section, _, key = flag[2:].partition(".")
                    if key:
                        # options of plugins: end_to_end.docs looks at their names
                        good = f"{section}.{key.removeprefix('no_')}" in keys_of_core() or section in KINDS or "/" in key
                    else:
                        good = flag in known or flag in ("--version", "--help") or any("/" in name for name in names)
                    if not good:
                        wrong.append(f"{page}: {flag} in {command}")
        self.assertEqual(wrong, [])
        self.assertGreater(checked, 60)


if __name__ == "__main__":
    main()
