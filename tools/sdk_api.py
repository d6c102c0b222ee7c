#!/usr/bin/env python3
"""The public interface of the sdk as text: every declaration of its headers and every symbol that its libraries export.

  tools/sdk_api.py            compares sdk/api.txt with the headers and the built libraries; exit code 1 if they differ
  tools/sdk_api.py --write    writes sdk/api.txt, after a line was added to sdk/CHANGELOG.md

Plugins are built against this interface, so a change of it must be deliberate. Comments, bodies of functions, private functions
and namespaces called detail are left out. Private fields and virtual functions are part of it, because objects and their tables
depend on them. The parser knows the C++ of these headers, not all of C++.
"""

import argparse
import difflib
import hashlib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEAD = "# The interface of the sdk. Written by tools/sdk_api.py --write; a change needs a line in sdk/CHANGELOG.md."
RECORDED = "# sdk/CHANGELOG.md was then: "
LIBRARIES = ("libtitan_base.so", "libtitan_sdk.so")
ACCESS = ("public", "protected", "private")
OPENING = re.compile(r"^(?:template ?<.*> ?)*(?:inline )?(namespace|class|struct|union|enum|extern ?\"C\")\b")


def without_comments(text):
    """Comments become blanks; strings stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
    return pattern.sub(lambda found: found[0] if found[0][0] in "\"'" else " ", text)


def normalised(text):
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r" ([)\],])", r"\1", re.sub(r"([(\[]) ", r"\1", text))


def split_macros(text):
    """The #define lines, and the text without any directive."""
    macros, kept = [], []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.lstrip().startswith("#"):
            if line.lstrip().startswith("#define"):
                macros.append(normalised(line))
        else:
            kept.append(line)
    return macros, "\n".join(kept)


class Reader:
    """Walks over the text of a header and yields its declarations."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def skip_braces(self):
        """Passes a balanced {...}, whose opening brace was just read; returns its content."""
        begin, depth = self.at, 1
        while depth:
            c = self.text[self.at]
            self.at += 1
            if c in "\"'":
                self.skip_string(c)
            depth += (c == "{") - (c == "}")
        return self.text[begin:self.at - 1]

    def skip_string(self, quote):
        if quote == "'" and self.at >= 2 and self.text[self.at - 2].isalnum():
            return  # 1'000
        while self.text[self.at] != quote:
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.at += 1

    def declarations(self, scope=(), access=None):
        """(scope, access, text) of each declaration up to the end of this scope."""
        begin, depth, is_function, in_initialiser = self.at, 0, False, False
        added = ""

        def taken(end):
            return added + self.text[begin:end]
        while self.at < len(self.text):
            c = self.text[self.at]
            self.at += 1
            if c in "\"'":
                self.skip_string(c)
            elif c in "([":
                depth += 1
                is_function |= c == "(" and depth == 1 and not in_initialiser
            elif c in ")]":
                depth -= 1
            elif depth:
                continue
            elif c == "=" and not is_function and not re.search(r"operator\s*[=!<>+*/-]*$", self.text[begin:self.at - 1]):
                in_initialiser = self.text[self.at] != "=" and self.text[self.at - 2] not in "=!<>"
            elif c == ":" and self.text[begin:self.at - 1].strip() in ACCESS and not added:
                access = self.text[begin:self.at - 1].strip()
                begin = self.at
            elif c == ";":
                text = normalised(taken(self.at - 1))
                if text:
                    yield scope, access, text
                begin, is_function, in_initialiser, added = self.at, False, False, ""
            elif c == "}":
                return
            elif c == "{":
                head = normalised(taken(self.at - 1))
                opened = OPENING.match(head)
                opens_scope = opened and "(" not in re.split(r"(?<!:):(?!:)", head[opened.end():])[0]
                if is_function and not opens_scope and not in_initialiser:
                    if re.search(r"[\w>]\s*$", self.text[begin:self.at - 1]) and re.search(r"\)[^()]*:[^:]", head) and not re.search(
                            r"(const|noexcept|override|final)\s*$", self.text[begin:self.at - 1]):
                        self.skip_braces()  # the initialiser of a member
                        continue
                    self.skip_braces()
                    yield scope, access, re.sub(r"(\)[^():]*):(?!:).*$", r"\1", head).strip()
                    begin, is_function, added = self.at, False, ""
                elif opens_scope and opened[1] == "enum":
                    content = normalised(self.skip_braces()).rstrip(", ")
                    yield scope, access, head + "{" + content + "}"
                    begin = self.text.index(";", self.at) + 1
                    self.at, is_function, added = begin, False, ""
                elif opens_scope and not in_initialiser:
                    is_class = opened[1] in ("class", "struct", "union")
                    if is_class:
                        yield scope, access, head
                    name = re.sub(r"(?<!:):(?!:).*$", "", head[opened.end():].replace("TITAN_API", "").replace(" final", "")).strip()
                    inner = {"class": "private", "struct": "public", "union": "public"}.get(opened[1])
                    if is_class and access == "private":
                        inner = "hidden"
                    yield from self.declarations((*scope, name), inner)
                    begin, is_function, in_initialiser, added = self.at, False, False, ""
                else:
                    start = self.at
                    self.skip_braces()
                    added, begin = taken(start - 1) + "{" + self.text[start:self.at - 1] + "}", self.at


def is_public(scope, access, text):
    if any(part == "detail" or part == "" for part in scope) or access == "hidden":
        return False
    is_function = "(" in text.split("=")[0]
    return access != "private" or "virtual " in text or (not is_function and not text.startswith(("friend", "using")))


def api_of_header(text):
    macros, code = split_macros(without_comments(text))
    lines = list(macros)
    for scope, access, declaration in Reader(code).declarations():
        if is_public(scope, access, declaration):
            lines.append("::".join(scope) + " | " + (access + ": " if access in ("protected", "private") else "") + declaration)
    return lines


def symbols_of(library):
    """The exported functions and tables of Titan; instances of templates depend on the compiler."""
    run = subprocess.run(["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=True)
    names = set()
    for line in run.stdout.splitlines():
        kind, name = line.split(" ", 2)[1:]
        owner = name.removeprefix("vtable for ")
        if owner.startswith("titan::") and (kind in "TDBR" or owner != name) and "<" not in owner.split("(")[0]:
            names.add(name)
    return sorted(names)


def api_text(root, libraries):
    lines = []
    include = root / "sdk/include"
    for header in sorted(include.rglob("*.h")):
        lines += ["", f"== {header.relative_to(include)}", *api_of_header(header.read_text())]
    for library in LIBRARIES:
        lines += ["", f"== {library}", *symbols_of(libraries / library)]
    return "\n".join(lines) + "\n"


def changelog_hash(root):
    return hashlib.sha256((root / "sdk/CHANGELOG.md").read_bytes()).hexdigest()[:16]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write sdk/api.txt")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the source tree")
    parser.add_argument("--libraries", type=pathlib.Path, help="folder of the built libraries (default: build/release/lib)")
    arguments = parser.parse_args()
    root = arguments.root
    file = root / "sdk/api.txt"
    text = api_text(root, arguments.libraries or root / "build/release/lib")
    stored = file.read_text() if file.exists() else ""
    head, _, body = stored.partition("\n\n")
    if "\n" + body == text:
        print("sdk/api.txt is the interface of the sdk")
        return 0
    if not arguments.write:
        for line in difflib.unified_diff(("\n" + body).splitlines(), text.splitlines(), "sdk/api.txt", "the sdk", lineterm="", n=0):
            print(line)
        print("\nthe interface of the sdk has changed. If that is meant, add a line to sdk/CHANGELOG.md for authors of plugins and run:\n"
              "  tools/sdk_api.py --write")
        return 1
    if RECORDED + changelog_hash(root) in head:
        print("sdk/CHANGELOG.md has not changed since sdk/api.txt was written: add a line on this change first")
        return 1
    file.write_text(HEAD + "\n" + RECORDED + changelog_hash(root) + "\n" + text)
    print("wrote sdk/api.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
