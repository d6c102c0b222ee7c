#!/usr/bin/env python3
"""Writes the pages that only the site has: the purpose of each file, by folder, from its first comment; the error messages that tests
expect; a page for each header of the sdk, which Breathe fills. docs/conf.py calls it. Standard library only.

    tools/site_pages.py FOLDER
"""

import pathlib
import re
import subprocess
import sys
import tomllib

from reference_pages import cell

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = (".h", ".cpp", ".cu", ".inc")
AREAS = {"core": "The core", "sdk": "The sdk", "plugins": "The plugins"}
ERRORS = {"config": "Configurations", "plugin": "Plugins"}


def tracked(folder):
    return subprocess.run(["git", "ls-files", folder], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def first_comment(path):
    """The first paragraph of a file's first comment, as running text; empty if the file begins with code."""
    found = re.match(r"((?://(?!/).*\n)+)", (ROOT / path).read_text(errors="replace"))
    if not found:
        return ""
    lines = [line.removeprefix("//").strip() for line in found[1].splitlines()]
    return " ".join(lines[:lines.index("")] if "" in lines else lines)


def rooms_of(area):
    """{folder: {stem: (file names, purpose)}} of an area."""
    rooms = {}
    for path in tracked(area):
        folder, _, name = path.rpartition("/")
        stem, dot, end = name.rpartition(".")
        if dot + end not in SOURCES or path.startswith("sdk/template/"):
            continue
        names, purpose = rooms.setdefault(folder, {}).get(stem, ([], ""))
        # a header's comment is preferred; a source's is used if the header has none
        text = first_comment(path)
        rooms[folder][stem] = ([*names, name], text if end == "h" and text else purpose or text)
    return rooms


def introductions():
    """{folder: its description in docs/internals/architecture.md}"""
    text = (ROOT / "docs/internals/architecture.md").read_text()
    return {folder.rstrip("/"): says for folder, says in re.findall(r"^\| `([\w/]+/)`[^|]*\| ([^|]*) \|", text, re.M)}


def area_page(area, title):
    says, text = introductions(), f"# {title}, file by file\n\nFrom the first comment of each file.\n"
    for folder, files in sorted(rooms_of(area).items()):
        text += f"\n## {folder}\n"
        if folder in says:
            intro = says[folder]
            text += f"\n{intro[0].upper()}{intro[1:]}.\n"
        text += "\n| file | purpose |\n|---|---|\n"
        for stem, (names, purpose) in sorted(files.items()):
            ends = "`, `".join(sorted(names, reverse=True))
            text += f"| `{ends}` | {cell(purpose)} |\n"
    return text


def errors_page():
    text = "# Error messages\n\nThe messages that the tests expect, word for word. Each begins with the failure and ends with the next action.\n"
    for group, title in ERRORS.items():
        text += f"\n## {title}\n"
        for path in tracked(f"tests/golden/errors/{group}_*"):
            name = pathlib.Path(path).stem.removeprefix(f"{group}_").replace("_", " ")
            text += f"\n### {name.capitalize()}\n\n```text\n{(ROOT / path).read_text().rstrip()}\n```\n"
    return text


def api_pages(folder):
    """Writes api.md, which lists the headers by folder, and api/<header>.md with the declarations of each."""
    by_room = {}
    for path in tracked("sdk/include/titan"):
        header = path.removeprefix("sdk/include/")
        by_room.setdefault(header.rpartition("/")[0], []).append((header, first_comment(path)))
    text = "# Headers of the sdk\n\nThe public interface for plugins. Each page has all declarations of a header with their contracts.\n"
    (folder / "api").mkdir(exist_ok=True)
    for room, headers in sorted(by_room.items()):
        text += f"\n## {room}/\n\n| header | purpose |\n|---|---|\n"
        for header, purpose in headers:
            page = header.removeprefix("titan/").replace("/", "-").removesuffix(".h")
            text += f"| [{header}](api/{page}.md) | {cell(purpose)} |\n"
            (folder / f"api/{page}.md").write_text(f"---\norphan: true\n---\n# {header}\n\n{cell(purpose)}\n\n```{{doxygenfile}} {header}\n```\n")
    (folder / "api.md").write_text(text)


LANGUAGES = {".txt": "cmake", ".cpp": "cpp", ".h": "cpp", ".toml": "toml", ".yml": "yaml", ".jsonl": "json", ".md": "markdown"}


def kind_pages(folder):
    """kinds.md lists the kinds of plugins; kinds/<kind>.md has the project that `titan new-plugin` makes of one."""
    text = ("# A plugin of each kind\n\nEach page shows the project that `titan new-plugin KIND acme/example` makes: it builds, runs and is a start "
            "for your own.\n[Write a plugin](../guides/write_a_plugin.md) explains the steps.\n\n| kind | the example |\n|---|---|\n")
    (folder / "kinds").mkdir(exist_ok=True)
    for kind in sorted({path.split("/")[2] for path in tracked("sdk/template")} - {"common"}):
        texts = template_texts(kind)
        files = {fill_in(path.split("/", 3)[3], texts): path for path in tracked("sdk/template/common") + tracked(f"sdk/template/{kind}")
                 if not path.endswith("/texts.toml")}
        purpose = fill_in(first_comment(files["example.cpp"]), texts)
        text += f"| [{kind}](kinds/{kind}.md) | {cell(purpose)} |\n"
        page = f"---\norphan: true\n---\n# Plugin kind: {kind}\n\n```\ntitan new-plugin {kind} acme/example\ncd example\n"
        page += "cmake -S . -B build -DTitan_ROOT=$HOME/titan && cmake --build build && ctest --test-dir build\n" + texts["TRAIN"] + "\n```\n"
        for name, path in sorted(files.items(), key=lambda file: (not file[0].endswith(".cpp"), file[0])):
            page += f"\n`{name}`:\n\n````{LANGUAGES.get(pathlib.Path(name).suffix, 'text')}\n{fill_in((ROOT / path).read_text(), texts).rstrip()}\n````\n"
        (folder / f"kinds/{kind}.md").write_text(page)
    (folder / "kinds.md").write_text(text)


def template_texts(kind):
    """The placeholders of `titan new-plugin KIND acme/example` (plugins/commands/new_plugin/templates.cpp) and their texts."""
    names = {"FULL_NAME": "acme/example", "OWNER": "acme", "NAME": "example", "CLASS": "Example", "LIBRARY": "acme_example"}
    texts = {}
    for folder in ("common", kind):
        for key, text in tomllib.loads((ROOT / f"sdk/template/{folder}/texts.toml").read_text()).items():
            texts[key.upper()] = text.removesuffix("\n")
    texts["KIND"] = kind
    return {**{key: fill_in(fill_in(text, texts), names) for key, text in texts.items()}, **names}


def fill_in(template, texts):
    """A text of sdk/template with its placeholders replaced; a line with an empty placeholder alone is left out."""
    for key, text in texts.items():
        if not text:
            template = re.sub(rf"(?m)^@{key}@\n", "", template)
        template = template.replace(f"@{key}@", text)
    return template


def name_files_by_path(xml):
    """Replaces file names by paths in Doxygen's index: several headers share a name, and Breathe looks them up by name."""
    index = xml / "index.xml"
    if not index.exists():
        return

    def by_path(found):
        location = re.search(r'<location file="([^"]+)"', (xml / f"{found[2]}.xml").read_text())
        return f"{found[1]}<name>{location[1]}</name>"
    index.write_text(re.sub(r'(<compound refid="([^"]+)" kind="file">)<name>[^<]*</name>', by_path, index.read_text()))


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for area, title in AREAS.items():
        (folder / f"{area}.md").write_text(area_page(area, title))
    (folder / "errors.md").write_text(errors_page())
    api_pages(folder)
    kind_pages(folder)
    name_files_by_path(folder / "xml")


if __name__ == "__main__":
    main()
