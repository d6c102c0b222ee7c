#!/usr/bin/env python3
"""Holds text to docs/reference/glossary.md: no more of the older words than there are, no more long sentences, short subjects of commits, and
no page that names an identifier which the tree does not have.

    tools/check_words.py                what is wrong; what stands in tests/words.json may stay, and no more of it
    tools/check_words.py --show WORD    where a word stands
    tools/check_words.py --show long    the sentences of more than 35 words
    tools/check_words.py --write        notes the counts of now, where they are lower; a higher one is refused

Words are counted in comments, messages and pages of core, sdk, plugins and docs. PLAIN pages have none of them. FOREIGN names are those of
other programs. Results that scripts write are not looked at. Standard library only.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOTED = "tests/words.json"
LONGEST, LONGEST_SUBJECT = 35, 72
# the older word and how it is found
WORDS = {"beside": r"\bbeside\b", "taker": r"taker", "told": r"\btold\b", "goes on": r"\b(?:go|goes|going|went) on\b", "dealt": r"\bdealt?s?\b",
         "whoever": r"\b(?:whoever|whatever)\b", "stray": r"\bstrays?\b", "played": r"\b(?:played|plays) (?:rank|step)s?\b",
         "rehearsal": r"\brehears(?:al|e|es|ed)\b", "trial": r"\btrials?\b", "meeting": r"\bmeeting\b", "type of numbers": r"\btypes? of numbers\b",
         "under way": r"\bunder way\b", "line that is none": r"\bthat (?:is|are) none\b", "a step of ours": r"\b(?:step|checkpoint|run)s? of ours\b",
         "stands still": r"\bstands? still\b", "comes to its end": r"\bcomes? to (?:its|an) end\b"}
FOLDERS = ("core", "sdk", "plugins", "docs")
PLAIN = ("README.md", "docs/README.md", "docs/start/install.md", "docs/start/first_run.md", "docs/start/own_text.md", "docs/start/many_ranks.md")
FOREIGN = {"snake_case", "WANDB_RESUME", "no_proxy", "RTLD_LOCAL", "record_stream", "reconfigure", "assistant_only_loss"}
UNREAD = ("docs/results/", "docs/reference/")


def tracked(root, *patterns):
    return subprocess.run(["git", "ls-files", *patterns], cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def places(root, pattern, files):
    """(file, line, text) of each find."""
    expression = re.compile(pattern, re.I)
    for name in files:
        for number, line in enumerate((root / name).read_text(errors="replace").splitlines(), 1):
            for _ in expression.finditer(line):
                yield name, number, line.strip()


def read_files(root):
    return [name for name in tracked(root, *FOLDERS) if name.endswith((".h", ".cpp", ".md")) and not name.startswith(UNREAD)]


def sentences(text):
    """(line, words) of the running text of a page, without code, tables and headings."""
    text = re.sub(r"^```.*?^```", lambda found: "\n" * found[0].count("\n"), text, flags=re.M | re.S)
    block, begin = [], 1
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.strip() and not re.match(r"\s*(\||#|<!--|- |\* |\d+\. |    )", line):
            begin = begin if block else number
            block.append(line)
            continue
        running = " ".join(block)
        for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`\[(*\"])", running):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if words:
                yield begin, words
        block = []


def long_sentences(root):
    for name in [*tracked(root, "docs/*.md"), "README.md", "CONTRIBUTING.md"]:
        if name.startswith(UNREAD) or not (root / name).exists():
            continue
        for line, words in sentences((root / name).read_text()):
            if len(words) > LONGEST:
                yield name, line, f"{len(words)} words: {' '.join(words[:10])} ..."


def counts(root):
    text = "\n".join((root / name).read_text(errors="replace") for name in read_files(root)).lower()
    found = {word: len(re.findall(pattern, text)) for word, pattern in WORDS.items()}
    return {**found, "long": sum(1 for _ in long_sentences(root))}


def subjects(root):
    """Of the commits since this check is there."""
    first = subprocess.run(["git", "log", "--diff-filter=A", "--format=%H", "--", NOTED], cwd=root, stdout=subprocess.PIPE, text=True).stdout.split()
    if not first:
        return []
    return subprocess.run(["git", "log", "--format=%s", f"{first[-1]}..HEAD"], cwd=root, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def unknown_identifiers(root):
    """(page, code) of each path, and each name with an underscore or `::`, in backticks that no file but pages has."""
    files = tracked(root)
    paths = {part for name in files for part in (name, name.rpartition(".")[0], *(str(folder) for folder in pathlib.PurePath(name).parents))}
    words = set(FOREIGN)
    for name in files:
        words.update(re.split(r"[/.]", name))
        if not name.endswith(".md") and not name.startswith(("tests/assets/", "tests/words.json")):
            words.update(re.findall(r"[A-Za-z_]\w*", (root / name).read_text(errors="replace")))
    for name in files:
        if not name.endswith(".md") or name.startswith("docs/results/"):
            continue
        text = re.sub(r"^```.*?^```", "", (root / name).read_text(), flags=re.M | re.S)
        for code in re.findall(r"`([^`\n]+)`", text):
            path = re.fullmatch(r"((?:core|sdk|plugins|tests|tools|train_configs|experiments)/[\w./-]*?\w)/?", code)
            if path and path[1] not in paths:
                yield name, code
            for identifier in re.findall(r"(?<![\w./-])[A-Za-z]\w*(?:_\w+|::\w+)\w*(?![\w/-]|\.\w)", code):
                if not set(identifier.split("::")) <= words:
                    yield name, code


def problems(root):
    noted, now, wrong = json.loads((root / NOTED).read_text()), counts(root), []
    for word, count in now.items():
        if count > noted.get(word, 0):
            what = "sentences of more than 35 words" if word == "long" else f"'{word}'"
            wrong.append(f"{what}: {count}, and {noted.get(word, 0)} before; tools/check_words.py --show '{word}' lists them, "
                         "docs/reference/glossary.md has other words")
    for name in PLAIN:
        for word, pattern in WORDS.items():
            wrong += [f"{file}:{line}: '{word}'" for file, line, _ in places(root, pattern, [name])]
    wrong += [f"{name}: `{code}` names something that the tree does not have; mend it, or add the name to FOREIGN in tools/check_words.py"
              for name, code in unknown_identifiers(root)]
    wrong += [f"the subject of a commit has {len(subject)} characters, of {LONGEST_SUBJECT}: {subject}"
              for subject in subjects(root) if len(subject) > LONGEST_SUBJECT]
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    arguments = parser.parse_args()
    root = arguments.root
    if arguments.show:
        if arguments.show != "long" and arguments.show not in WORDS:
            sys.exit(f"error: no word '{arguments.show}'; there are: long, {', '.join(WORDS)}")
        found = long_sentences(root) if arguments.show == "long" else places(root, WORDS[arguments.show], read_files(root))
        for file, line, text in found:
            print(f"{file}:{line}: {text}")
        return
    path = root / NOTED
    if arguments.write:
        now, noted = counts(root), json.loads(path.read_text()) if path.exists() else {}
        risen = [word for word, count in now.items() if word in noted and count > noted[word]]
        if risen:
            sys.exit(f"error: more of these than before: {', '.join(risen)}")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(now, indent=2) + "\n")
        return
    wrong = problems(root)
    if wrong:
        sys.exit("error: " + "\n       ".join(wrong))


if __name__ == "__main__":
    main()
