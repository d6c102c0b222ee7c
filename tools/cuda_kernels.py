#!/usr/bin/env python3
"""What nvcc made of the cuda plugin's kernels: registers, spills, shared memory, occupancy, and the instructions for sm_90.

    tools/cuda_kernels.py                        both tables, as Markdown
    tools/cuda_kernels.py --write                writes them to docs/internals/cuda_kernels.md
    tools/cuda_kernels.py --check                fails where a kernel breaks its limits, or a table is old

The first table is what ptxas said while the plugin was built (build/release/plugins/devices/cuda/*.ptxas, or --logs FOLDER).
Threads of a block and how many blocks a multiprocessor must hold are the kernels' own (kThreads, kBlocks). The second table
counts the machine instructions (SASS) in the objects of the same folder. It needs cuobjdump and nvdisasm: TITAN_CUOBJDUMP,
PATH, the CUDA toolkit, or the wheel of triton, which brings both. Without them the first table alone is made and checked.
No GPU is needed.
"""

import argparse
import collections
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[1]
KERNELS = ROOT / "plugins/devices/cuda/kernels"
LOGS = ROOT / "build/release/plugins/devices/cuda"
PAGE = ROOT / "docs/internals/cuda_kernels.md"
BEGIN, END = "<!-- made by tools/cuda_kernels.py -->", "<!-- end -->"
BEGIN_SASS, END_SASS = "<!-- SASS by tools/cuda_kernels.py -->", "<!-- end of SASS -->"
SASS_ARCH = "sm_90"

# 128-bit loads and stores that each instance of a kernel has at least: its tensors go through them where addresses are aligned.
# The kernels of mixed types move the widest type by 128 bits and the others by as many elements. A thread of SumRows reads one
# column.
WIDE_ACCESSES = {
    "AdamW": (1, 0),
    "CrossEntropy": (2, 1),
    "EmbeddingBackward": (1, 1),
    "LargestOfBlocks": (4, 0),
    "LargestOfColumns": (4, 0),
    "QuantizeRows": (2, 0),
    "QuantizeTensor": (4, 0),
    "QuantizeTurned": (0, 1),
    "RmsNormBackward": (4, 1),
    "RmsNormForward": (3, 2),
    "RopeRotate": (2, 2),
    "ScaleOfColumns": (0, 0),
    "SumRows": (0, 0),
    "SwigluBackward": (3, 2),
    "SwigluForward": (2, 1),
}


class Limits(typing.NamedTuple):
    """Of a multiprocessor: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""
    warps: int
    blocks: int
    registers: int
    shared: int             # bytes
    shared_of_a_block: int  # bytes, without asking for more at the launch
    reserved: int = 1024    # bytes of shared memory that the system takes of each block
    register_unit: int = 256  # registers are given to warps by so many
    shared_unit: int = 128
    partitions: int = 4     # whose registers are their own warps'


LIMITS = {
    "sm_80": Limits(64, 32, 65536, 164 * 1024, 48 * 1024),
    "sm_90": Limits(64, 32, 65536, 228 * 1024, 48 * 1024),
    "sm_90a": Limits(64, 32, 65536, 228 * 1024, 48 * 1024),
    "sm_100": Limits(64, 32, 65536, 228 * 1024, 48 * 1024),
}


class Kernel(typing.NamedTuple):
    name: str
    arch: str
    registers: int
    spilled: int  # bytes, loads and stores
    stack: int    # bytes
    shared: int   # bytes


def up(value, unit):
    return (value + unit - 1) // unit * unit


def resident_blocks(limits, threads, registers, shared):
    """Blocks that a multiprocessor holds at a time, and what there is no more of."""
    warps = up(threads, 32) // 32
    of_warp = up(registers * 32, limits.register_unit)
    by = {
        "threads": limits.warps // warps,
        "blocks": limits.blocks,
        "registers": limits.registers // limits.partitions // of_warp * limits.partitions // warps,
        "shared memory": limits.shared // up(shared + limits.reserved, limits.shared_unit),
    }
    least = min(by, key=by.get)
    return by[least], least


def declared(folder=KERNELS):
    """{struct: (threads, blocks)} from the kernels' sources."""
    found = {}
    for path in sorted(folder.glob("*.h")):
        struct = None
        for line in path.read_text().splitlines():
            if opened := re.match(r"struct (\w+) \{", line):
                struct = opened[1]
            if numbers := re.match(r"  static constexpr int kThreads = (\d+), kBlocks = (\d+);", line):
                found[struct] = int(numbers[1]), int(numbers[2])
    return found


def read(text):
    """The kernels of what `ptxas -v` says, names demangled."""
    kernels = []
    for part in text.split("Compiling entry function '")[1:]:
        name, arch = re.match(r"(\S+)' for '(\w+)'", part).groups()
        stack, stores, loads = map(int, re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
                                                  part).groups())
        registers = int(re.search(r"Used (\d+) registers", part)[1])
        shared = re.search(r"(\d+) bytes smem", part)
        kernels.append(Kernel(name, arch, registers, stores + loads, stack, int(shared[1]) if shared else 0))
    return [kernel._replace(name=short(name)) for kernel, name in zip(kernels, demangled([kernel.name for kernel in kernels]))]


def demangled(names):
    return subprocess.run(["c++filt"], input="\n".join(names), text=True, capture_output=True, check=True).stdout.splitlines()


def short(name):
    found = re.search(r"kernel_entry<(.*?) ?>\(", name)
    return found[1].replace("titan::cuda::", "") if found else name


def problems(kernels, threads_of):
    """What is wrong, one line each."""
    found = []
    for kernel in kernels:
        where = f"{kernel.name} on {kernel.arch}"
        struct = kernel.name.split("<")[0]
        if struct not in threads_of:
            found.append(f"{where}: its source declares no kThreads and kBlocks")
            continue
        threads, blocks = threads_of[struct]
        limits = LIMITS[kernel.arch]
        if kernel.spilled:
            found.append(f"{where}: {kernel.spilled} bytes of registers are spilled to memory")
        if kernel.stack:
            found.append(f"{where}: {kernel.stack} bytes of stack; an array is indexed by what the compiler does not know")
        if kernel.shared > limits.shared_of_a_block:
            found.append(f"{where}: {kernel.shared} bytes of shared memory, {limits.shared_of_a_block} are allowed")
        held, least = resident_blocks(limits, threads, kernel.registers, kernel.shared)
        if held < blocks:
            found.append(f"{where}: a multiprocessor holds {held} blocks, for want of {least}; the kernel declares {blocks}")
    return found


def table(kernels, threads_of):
    """Markdown: a row per kernel, a column group per architecture."""
    archs = [arch for arch in LIMITS if any(kernel.arch == arch for kernel in kernels)]
    head = ["kernel", "threads", "shared memory", "spills"]
    head += archs
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    by_name = {}
    for kernel in kernels:
        by_name.setdefault(kernel.name, {})[kernel.arch] = kernel
    for name in sorted(by_name):
        threads = threads_of[name.split("<")[0]][0]
        of = by_name[name]
        row = [f"`{name}`", str(threads), str(max(kernel.shared for kernel in of.values())),
               str(max(kernel.spilled for kernel in of.values()))]
        for arch in archs:
            if arch not in of:
                row.append("")
                continue
            limits = LIMITS[arch]
            held, least = resident_blocks(limits, threads, of[arch].registers, of[arch].shared)
            row.append(f"{of[arch].registers}, {held}, {held * threads / 32 / limits.warps:.0%} ({least})")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


class Sass(typing.NamedTuple):
    """Instructions of a kernel, by their place in its code: how often each runs is not known."""
    name: str
    instructions: int  # without NOP
    loads: collections.Counter   # from global memory, by their width in bits
    stores: collections.Counter
    local: int     # accesses to local memory
    tensor: int    # products of matrices
    barriers: int  # of a block
    special: int   # the unit for reciprocals, roots, exponentials and logarithms
    double: int    # arithmetic in float64


INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


def width_in_bits(operation):
    """Of an access: LDG.E.U16, STG.E.128, ..."""
    for part in operation.split("."):
        if part in ("U8", "S8", "U16", "S16", "64", "128"):
            return int(part.lstrip("US"))
    return 32


def read_sass(text):
    """The kernels of what `cuobjdump -sass` says, names demangled."""
    kernels = []
    for part in re.split(r"^\s*Function : ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        operations = [found[1] for line in lines if (found := INSTRUCTION.match(line))]
        count = collections.Counter()
        loads, stores = collections.Counter(), collections.Counter()
        for operation in operations:
            base = operation.split(".")[0]
            count[base] += 1
            if base == "LDG":
                loads[width_in_bits(operation)] += 1
            elif base == "STG":
                stores[width_in_bits(operation)] += 1
        # HFMA2.MMA, a multiply-add of pairs, is none
        tensor = sum(n for base, n in count.items() if re.fullmatch(r"(U?TC)?[A-Z]?G?MMA", base))
        kernels.append(Sass(name=lines[0].strip(), instructions=len(operations) - count["NOP"], loads=loads, stores=stores,
                            local=count["LDL"] + count["STL"], tensor=tensor, barriers=count["BAR"], special=count["MUFU"],
                            double=sum(count[base] for base in ("DADD", "DMUL", "DFMA", "DSETP"))))
    return [kernel._replace(name=short(name)) for kernel, name in zip(kernels, demangled([kernel.name for kernel in kernels]))]


def sass_problems(kernels):
    """What is wrong, one line each."""
    found = []
    for kernel in kernels:
        where = f"{kernel.name} on {SASS_ARCH}"
        if kernel.local:
            found.append(f"{where}: {kernel.local} accesses to local memory")
        if kernel.tensor:
            found.append(f"{where}: {kernel.tensor} products of matrices; {PAGE.name} says that no kernel has any")
        struct = kernel.name.split("<")[0]
        if struct not in WIDE_ACCESSES:
            found.append(f"{where}: {pathlib.Path(__file__).name} does not say how many 128-bit accesses it needs")
            continue
        for what, least, of in zip(("loads", "stores"), WIDE_ACCESSES[struct], (kernel.loads, kernel.stores)):
            if of[128] < least:
                found.append(f"{where}: {of[128]} {what} of 128 bits, at least {least} are needed")
    return found


def between(numbers):
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least}–{most}"


def sass_table(kernels):
    """Markdown: a row per kernel template, from the least to the most of its instances."""
    by_struct = {}
    for kernel in kernels:
        by_struct.setdefault(kernel.name.split("<")[0], []).append(kernel)
    head = ["kernel", "instances", "instructions", "128-bit loads", "all loads", "128-bit stores", "all stores", "local",
            "tensor", "barriers", "MUFU", "float64"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for struct in sorted(by_struct):
        of = by_struct[struct]
        columns = [lambda k: k.instructions, lambda k: k.loads[128], lambda k: sum(k.loads.values()), lambda k: k.stores[128],
                   lambda k: sum(k.stores.values()), lambda k: k.local, lambda k: k.tensor, lambda k: k.barriers,
                   lambda k: k.special, lambda k: k.double]
        row = [f"`{struct}`", str(len(of))] + [between([column(kernel) for kernel in of]) for column in columns]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


@functools.cache
def find_cuobjdump():
    """The program, with nvdisasm beside it or on PATH; None where there is none."""
    places = [os.environ.get("TITAN_CUOBJDUMP"), shutil.which("cuobjdump"), "/usr/local/cuda/bin/cuobjdump"]
    wheels = [pathlib.Path(folder) for folder in sys.path if folder] + sorted(ROOT.glob(".venv/lib/python3*/site-packages"))
    places += [folder / "triton/backends/nvidia/bin/cuobjdump" for folder in wheels]
    for place in filter(None, places):
        beside = pathlib.Path(place).parent / "nvdisasm"
        if os.access(place, os.X_OK) and (os.access(beside, os.X_OK) or shutil.which("nvdisasm")):
            return pathlib.Path(place)
    return None


def disassembled(program, objects, arch):
    """The kernels of object files or libraries."""
    environment = dict(os.environ, PATH=f"{program.parent}:{os.environ.get('PATH', '')}")
    kernels = []
    for path in objects:
        run = subprocess.run([program, "-sass", "-arch", arch, path], text=True, capture_output=True, env=environment)
        if run.returncode:
            sys.exit(f"error: {program} on {path}: {run.stderr.strip()}")
        kernels += read_sass(run.stdout)
    return kernels


def replaced(page, text, begin=BEGIN, end=END):
    before, rest = page.split(begin)
    return before + begin + "\n" + text + "\n" + end + rest.split(end)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=pathlib.Path, default=LOGS)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    logs = sorted(options.logs.glob("*.ptxas"))
    if not logs:
        sys.exit(f"error: no *.ptxas in {options.logs}; build the cuda plugin where nvcc is found (ninja cuda.plugin)")
    kernels = [kernel for log in logs for kernel in read(log.read_text())]
    threads_of = declared()
    program = find_cuobjdump()
    objects = sorted(options.logs.glob("*_kernels.o")) if program else []
    archs = {kernel.arch for kernel in kernels}
    arch = SASS_ARCH if SASS_ARCH in archs else SASS_ARCH + "a"
    objects = objects if arch in archs else []
    sass = disassembled(program, objects, arch) if objects else []
    found = problems(kernels, threads_of) + sass_problems(sass)
    if objects and {kernel.name for kernel in sass} != {kernel.name for kernel in kernels if kernel.arch == arch}:
        found.append(f"the objects of {options.logs} have other kernels for {arch} than the logs beside them; build anew")
    if found:
        sys.exit("\n".join(f"error: {line}" for line in found))
    missing = f"objects for {SASS_ARCH}" if program else "cuobjdump"
    without = "" if sass else f"; their SASS was not looked at, for want of {missing}"
    page = PAGE.read_text()
    made = replaced(page, table(kernels, threads_of))
    if sass:
        made = replaced(made, sass_table(sass), BEGIN_SASS, END_SASS)
    if options.write:
        PAGE.write_text(made)
    elif options.check:
        if made != page:
            sys.exit(f"error: the tables of {PAGE.relative_to(ROOT)} are not those of this build; run "
                     "tools/cuda_kernels.py --write")
        print(f"{len(kernels)} kernels, none spills, all fit their limits{without}")
    else:
        print(table(kernels, threads_of))
        print(f"\n{sass_table(sass)}" if sass else f"\n{len(kernels)} kernels{without}")


if __name__ == "__main__":
    main()
