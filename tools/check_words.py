#!/usr/bin/env python3
"""Checks text against docs/reference/glossary.md: the numbers of older words and of long sentences may not grow, subjects of commits are
short, and pages name only identifiers that exist in the tree.

    tools/check_words.py                lists the violations; tests/words.json has the number allowed of each word
    tools/check_words.py --show WORD    lists the places of a word
    tools/check_words.py --show long    lists the sentences of more than 35 words
    tools/check_words.py --write        writes the current counts to tests/words.json; fails if one has grown

Words are counted in comments, messages and pages of core, sdk, plugins and docs. Pages in PLAIN may contain none of them. FOREIGN lists
identifiers of other programs. Pages that scripts write (UNREAD) are not checked. Standard library only.
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
# older words, each with the regular expression that finds it; literal text comes first, which Python finds fastest
WORDS = {"beside": r"beside(?<=\bbeside)\b", "taker": r"taker", "told": r"told(?<=\btold)\b",
         "goes on": r" on\b(?:(?<=\bgo on)|(?<=\bgoes on)|(?<=\bgoing on)|(?<=\bwent on))", "dealt": r"deal(?<=\bdeal)t?s?\b",
         "whoever": r"ever\b(?:(?<=\bwhoever)|(?<=\bwhatever))", "stray": r"stray(?<=\bstray)s?\b",
         "played": r"play(?<=\bplay)(?:ed|s) (?:rank|step)s?\b", "rehearsal": r"rehears(?<=\brehears)(?:al|e|es|ed)\b", "trial": r"trial(?<=\btrial)s?\b",
         "meeting": r"meeting(?<=\bmeeting)\b", "type of numbers": r"type(?<=\btype)s? of numbers\b", "under way": r"under way(?<=\bunder way)\b",
         "line that is none": r"that (?<=\bthat )(?:is|are) none\b", "a step of ours": r" of ours\b(?<=(?:step|.run|oint|teps|runs|ints) of ours)",
         "stands still": r"stand(?<=\bstand)s? still\b", "comes to its end": r"come(?<=\bcome)s? to (?:its|an) end\b"}
FOLDERS = ("core", "sdk", "plugins", "docs")
PLAIN = ("README.md", "docs/README.md", "docs/start/install.md", "docs/start/first_run.md", "docs/start/own_text.md", "docs/start/many_ranks.md")
FOREIGN = {"snake_case", "WANDB_RESUME", "no_proxy", "RTLD_LOCAL", "record_stream", "reconfigure", "assistant_only_loss"}
SOURCES = (".h", ".cpp", ".cu", ".inc", ".py", ".sh", ".cmake", ".txt", ".toml", ".in", "CMakePresets.json", "ci/run")
UNREAD = ("docs/results/", "docs/reference/", "sdk/CHANGELOG.md")


def tracked(root, *patterns):
    return subprocess.run(["git", "ls-files", *patterns], cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def places(root, pattern, files):
    """(file, line, text) of each match."""
    expression = re.compile(pattern, re.I)
    for name in files:
        for number, line in enumerate((root / name).read_text(errors="replace").splitlines(), 1):
            for _ in expression.finditer(line):
                yield name, number, line.strip()


def read_files(root):
    return [name for name in tracked(root, *FOLDERS) if name.endswith((".h", ".cpp", ".md")) and not name.startswith(UNREAD)]


def sentences(text):
    """(line, words) of each sentence of a page, without code, tables, lists and headings."""
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
    """Subjects of the commits since this check was added."""
    first = subprocess.run(["git", "log", "--diff-filter=A", "--format=%H", "--", NOTED], cwd=root, stdout=subprocess.PIPE, text=True).stdout.split()
    if not first:
        return []
    return subprocess.run(["git", "log", "--format=%s", f"{first[-1]}..HEAD"], cwd=root, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def unknown_identifiers(root):
    """(page, code) of each path, and each name with an underscore or `::`, in backticks that occurs only in pages."""
    files = tracked(root)
    paths = {part for name in files for part in (name, name.rpartition(".")[0], *(str(folder) for folder in pathlib.PurePath(name).parents))}
    words = set(FOREIGN)
    for name in files:
        words.update(re.split(r"[/.]", name))
        if name.endswith(SOURCES) and not name.startswith(("tests/assets/", "tests/fuzz/hostile/")):
            words.update(re.findall(r"[A-Za-z_]\w*", (root / name).read_text(errors="replace")))
    for name in files:
        if not name.endswith(".md") or name.startswith(("docs/results/", "sdk/CHANGELOG.md")):
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
            wrong.append(f"{what}: {count}, allowed {noted.get(word, 0)}; tools/check_words.py --show '{word}' lists them, "
                         "docs/reference/glossary.md has the words to use instead")
    for name in PLAIN:
        for word, pattern in WORDS.items():
            wrong += [f"{file}:{line}: '{word}'" for file, line, _ in places(root, pattern, [name])]
    wrong += [f"{name}: `{code}` names an identifier that does not exist in the tree; fix it, or add it to FOREIGN in tools/check_words.py"
              for name, code in unknown_identifiers(root)]
    wrong += [f"the subject of a commit has {len(subject)} characters, at most {LONGEST_SUBJECT} are allowed: {subject}"
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
            sys.exit(f"error: unknown word '{arguments.show}'; known: long, {', '.join(WORDS)}")
        found = long_sentences(root) if arguments.show == "long" else places(root, WORDS[arguments.show], read_files(root))
        for file, line, text in found:
            print(f"{file}:{line}: {text}")
        return
    path = root / NOTED
    if arguments.write:
        now, noted = counts(root), json.loads(path.read_text()) if path.exists() else {}
        risen = [word for word, count in now.items() if word in noted and count > noted[word]]
        if risen:
            sys.exit(f"error: more than tests/words.json allows: {', '.join(risen)}; --show WORD lists the places")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(now, indent=2) + "\n")
        return
    wrong = problems(root)
    if wrong:
        sys.exit("error: " + "\n       ".join(wrong))


if __name__ == "__main__":
    main()
