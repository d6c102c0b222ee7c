#!/usr/bin/env python3
"""Checks the layering of the sources: every #include goes to a lower layer, and no folder or file includes itself indirectly.

    tools/check_floors.py             prints the graph of the folders; fails and lists the violations, if any
    tools/check_floors.py --dot       prints the graph for Graphviz
    tools/check_floors.py --root DIR  checks another tree

A room is a folder of sources, a floor is a layer; tools/floors.toml assigns each room to a floor. A node of the graph is a header
with its source (x.h and x.cpp). Violations, each printed as file:line -> file:
  arrow up           a room includes a room that is not on a lower floor
  circle             an include cycle of folders, or of files
  strangers          core includes a plugin, a plugin includes core or another plugin, the sdk includes either
  nothing            the included file of core or a plugin does not exist
  torch in a room    a file includes a header of torch, directly or not, and floors.toml does not list its room under `torch`
  rooms              a folder without a floor, or a floor for a folder without files
  shapes             TITAN_PLUGIN is not in plugins/<kind>/<name>/plugin.cpp; code that a kind shares is in <kind>/common
Exit code: 0 no violation, 1 violations, 2 the data file cannot be read.
"""

import argparse
import collections
import pathlib
import re
import sys
import tomllib

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')
DOOR = re.compile(r"^TITAN_PLUGIN\(", re.MULTILINE)
SUFFIXES = (".h", ".cpp", ".cu", ".cuh", ".inc")
TORCH = ("ATen/", "c10/", "torch/")
Include = collections.namedtuple("Include", "source line target")  # target: a path in the tree, or the text of the include


class Tree:
    """The sources under core, sdk and plugins, and their includes."""

    def __init__(self, root):
        self.root = root
        self.files = sorted(
            path.relative_to(root).as_posix() for top in ("core", "sdk/include", "sdk/src", "plugins")
            for path in (root / top).rglob("*") if path.suffix in SUFFIXES)
        known = set(self.files)
        self.includes = []  # includes of files of the tree
        self.foreign = []   # all other includes
        for file in self.files:
            for number, line in enumerate((root / file).read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                target = self.resolve(file, match[2], match[1] == '"', known)
                (self.includes if target else self.foreign).append(Include(file, number, target or match[2]))

    @staticmethod
    def resolve(file, name, quoted, known):
        """The file of the tree that `file` includes as `name`, searched in the compiler's order; None for other headers."""
        parent = file.rpartition("/")[0]
        for folder in ([parent] if quoted else []) + ["sdk/include", "sdk/src", "plugins", "."]:
            path = pathlib.PurePosixPath(folder, name)
            parts = []
            for part in path.parts:
                if part == ".." and parts:
                    parts.pop()
                elif part != ".":
                    parts.append(part)
            if "/".join(parts) in known:
                return "/".join(parts)
        return None


def room_of(file):
    """The room of a file: its folder in core and the sdk's sources; one room for all sdk headers, and one for each plugin."""
    parts = file.split("/")
    if parts[0] == "plugins":
        return "/".join(parts[:3]) if len(parts) > 3 else "/".join(parts[:2])
    if file.startswith("sdk/include/"):
        return "sdk/include"
    return "/".join(parts[:-1])


def node_of(file):
    """The node of a file: a header and its source share one; in the sdk they are in different folders."""
    stem = file.rpartition(".")[0].replace("sdk/src/nn/attention/", "sdk/src/nn/").replace("sdk/src/nn/experts/", "sdk/src/nn/")
    for prefix in ("sdk/include/titan/", "sdk/src/base/", "sdk/src/interfaces/", "sdk/src/"):
        if stem.startswith(prefix):
            return "sdk/" + stem[len(prefix):]
    return stem


def circles(edges):
    """The strongly connected components with more than one node of {node: set of nodes}. Tarjan's algorithm, without recursion."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []
    for start in sorted(edges):
        if start in index:
            continue
        work = [(start, iter(sorted(edges[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, rest = work[-1]
            child = next(rest, None)
            if child is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set()
                    while node not in component:
                        component.add(stack[-1])
                        on_stack.discard(stack.pop())
                    if len(component) > 1:
                        found.append(component)
            elif child not in index:
                index[child] = low[child] = len(index)
                stack.append(child)
                on_stack.add(child)
                work.append((child, iter(sorted(edges.get(child, ())))))
            elif child in on_stack:
                low[node] = min(low[node], index[child])
    return found


def shown(include):
    return f"{include.source}:{include.line} -> {include.target}"


def circles_by(tree, name_of, what, belongs):
    """Maps files to names by `name_of`; returns one problem for each cycle of names, with the includes that form it."""
    edges = collections.defaultdict(set)
    kept = []
    for include in tree.includes:
        source, target = name_of(include.source), name_of(include.target)
        if source != target and belongs(include):
            edges[source].add(target)
            kept.append((source, target, include))
    problems = []
    for circle in circles(edges):
        arrows = [shown(include) for source, target, include in kept if source in circle and target in circle]
        problems.append(f"circle of {what}: {', '.join(sorted(circle))}\n  " + "\n  ".join(arrows))
    return problems


def arrows_up(tree, floors):
    height = {room: floor for floor, rooms in enumerate(floors) for room in rooms}
    rooms = {room_of(file) for file in tree.files if file.startswith("core/")}
    problems = [f"room without a floor: {room}" for room in sorted(rooms - set(height))]
    problems += [f"floor for a folder without files: {room}" for room in sorted(set(height) - rooms)]
    for include in tree.includes:
        source, target = room_of(include.source), room_of(include.target)
        if source != target and source in height and target in height and height[target] >= height[source]:
            kind = "arrow up" if height[target] > height[source] else "arrow between rooms of one floor"
            problems.append(f"{kind}: {shown(include)}")
    return problems


def strangers(tree, shared):
    """Plugins include the sdk, themselves and the folders in `shared`; the sdk includes itself; core includes no plugin."""
    problems = [f"include of a missing file: {shown(include)}" for include in tree.foreign
                if include.target.startswith(("core/", "plugins/"))]
    for include in tree.includes:
        source, target = include.source.split("/")[0], include.target.split("/")[0]
        if (source, target) in (("core", "plugins"), ("plugins", "core"), ("sdk", "core"), ("sdk", "plugins")):
            problems.append(f"{source} includes {target}: {shown(include)}")
        elif source == "plugins" and include.target.startswith("sdk/src/"):
            problems.append(f"a plugin includes a private header of the sdk: {shown(include)}")
        elif source == "core" and include.target.startswith("sdk/src/"):
            problems.append(f"core includes a private header of the sdk: {shown(include)}")
        elif source == target == "plugins":
            room = room_of(include.target)
            if room != room_of(include.source) and room not in shared:
                problems.append(f"a plugin includes another: {shown(include)}")
    return problems


def torch_in(tree, allowed):
    """Includes that lead to a torch header, in rooms of core and of the sdk's sources that are not in `allowed`."""
    sees = {include.source for include in tree.foreign if include.target.startswith(TORCH)}
    into = collections.defaultdict(set)
    for include in tree.includes:
        into[include.target].add(include.source)
    open_ends = list(sees)
    while open_ends:
        for source in into[open_ends.pop()] - sees:
            sees.add(source)
            open_ends.append(source)
    rooms = {room_of(file) for file in sees}
    problems = [f"listed under torch, but includes none of its headers: {room}" for room in sorted(allowed - rooms)]
    return problems + [
        f"torch in a room that is not listed under torch: {shown(include)}" for include in tree.includes + tree.foreign
        if room_of(include.source).startswith(("core", "sdk/src/")) and room_of(include.source) not in allowed
        and (include.target in sees or include.target.startswith(TORCH))]


def shapes(tree):
    """Every plugin has exactly one TITAN_PLUGIN, in plugin.cpp; a folder `common` has none."""
    folders = collections.defaultdict(set)
    for file in tree.files:
        parts = file.split("/")
        if parts[0] == "plugins":
            folders["/".join(parts[:3])].add(file)
    problems = []
    for folder, files in sorted(folders.items()):
        doors = sorted(file for file in files if DOOR.search((tree.root / file).read_text(encoding="utf-8")))
        wanted = [] if folder.endswith("/common") else [f"{folder}/plugin.cpp"]
        if doors != wanted:
            problems.append(f"{folder}: TITAN_PLUGIN is in {', '.join(doors) or 'no file'}, "
                            f"it must be in {', '.join(wanted) or 'no file'}")
    return problems


def graph(tree):
    """{(room, room): number of includes}, without the headers of the sdk, which every room may include."""
    arrows = collections.Counter((room_of(i.source), room_of(i.target)) for i in tree.includes)
    return {(a, b): n for (a, b), n in sorted(arrows.items()) if a != b and "sdk/include" not in (a, b)}


def print_text(arrows, floors):
    order = [room for rooms in reversed(floors) for room in rooms]
    rooms = sorted({a for a, _ in arrows}, key=lambda r: (order.index(r) if r in order else len(order), r))
    for room in rooms:
        print(f"{room} -> " + ", ".join(f"{b} ({n})" for (a, b), n in arrows.items() if a == room))


def print_dot(arrows, floors):
    print("digraph floors {\n  rankdir=TB; node [shape=box];")
    for rooms in floors:
        print("  {rank=same; " + " ".join(f'"{room}";' for room in rooms) + "}")
    for (a, b), n in arrows.items():
        print(f'  "{a}" -> "{b}" [label={n}];')
    print("}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--dot", action="store_true", help="print the graph in the format of Graphviz")
    arguments = parser.parse_args()
    try:
        house = tomllib.loads((arguments.root / "tools/floors.toml").read_text(encoding="utf-8"))
        floors, torch, shared = house["floors"], set(house["torch"]), set(house["shared_by_plugins"])
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        print(f"check_floors.py: error: cannot read tools/floors.toml: {error!r}", file=sys.stderr)
        return 2

    tree = Tree(arguments.root)
    (print_dot if arguments.dot else print_text)(graph(tree), floors)
    problems = arrows_up(tree, floors) + strangers(tree, shared) + torch_in(tree, torch)
    problems += shapes(tree)
    problems += circles_by(tree, room_of, "folders", lambda i: True)
    problems += circles_by(tree, node_of, "files", lambda i: True)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(f"{len(problems)} problems; an include may only go to a lower floor, see tools/floors.toml", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
