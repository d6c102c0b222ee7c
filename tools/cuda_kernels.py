#!/usr/bin/env python3
"""Reports resources of the compiled CUDA kernels: registers, spills, shared memory, occupancy, and instruction counts for sm_90.

    tools/cuda_kernels.py                        prints both tables as Markdown
    tools/cuda_kernels.py --write                writes them to docs/internals/cuda_kernels.md
    tools/cuda_kernels.py --check                fails if a kernel exceeds its limits, or a table of the page is out of date

The first table comes from the output of ptxas during the build (build/release/plugins/devices/cuda/*.ptxas, or --logs FOLDER). The
kernels declare their threads per block and the blocks that must fit on a multiprocessor (kThreads, kBlocks). The second table
counts the machine instructions (SASS) in the objects of the same folder. It needs cuobjdump and nvdisasm, from TITAN_CUOBJDUMP,
PATH, the CUDA toolkit, or the wheel of triton, which has both. Without them only the first table is made and checked. Needs no GPU.
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

# Minimum number of 128-bit (loads, stores) in each instance of a kernel, which it uses for aligned addresses. Kernels of mixed types
# move the widest type by 128 bits and the others by the same number of elements. A thread of SumRows reads one column.
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
    """Limits of a multiprocessor: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""
    warps: int
    blocks: int
    registers: int
    shared: int             # bytes
    shared_of_a_block: int  # bytes, without opting in to more at the launch
    reserved: int = 1024    # bytes of shared memory per block that the system reserves
    register_unit: int = 256  # allocation unit of registers, per warp
    shared_unit: int = 128    # allocation unit of shared memory, in bytes
    partitions: int = 4     # each with its own warps and registers


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
    """The number of blocks that fit on a multiprocessor at a time, and the resource that limits it."""
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
    """The kernels in the output of `ptxas -v`, with demangled names."""
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
    """Kernels that exceed their limits, one line each."""
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
            found.append(f"{where}: {kernel.stack} bytes of stack; an array index is not a compile-time constant")
        if kernel.shared > limits.shared_of_a_block:
            found.append(f"{where}: {kernel.shared} bytes of shared memory, {limits.shared_of_a_block} are allowed")
        held, least = resident_blocks(limits, threads, kernel.registers, kernel.shared)
        if held < blocks:
            found.append(f"{where}: a multiprocessor holds {held} blocks, limited by {least}; the kernel declares {blocks}")
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
    """Instruction counts of a kernel's code; each instruction counts once, however often it runs."""
    name: str
    instructions: int  # without NOP
    loads: collections.Counter   # {width in bits: number} of loads from global memory
    stores: collections.Counter
    local: int     # accesses to local memory
    tensor: int    # matrix products on tensor cores
    barriers: int  # barriers of a block
    special: int   # MUFU: reciprocals, roots, exponentials and logarithms
    double: int    # arithmetic in float64


INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


def width_in_bits(operation):
    """The width of an access such as LDG.E.U16 or STG.E.128."""
    for part in operation.split("."):
        if part in ("U8", "S8", "U16", "S16", "64", "128"):
            return int(part.lstrip("US"))
    return 32


def read_sass(text):
    """The kernels in the output of `cuobjdump -sass`, with demangled names."""
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
        # does not match HFMA2.MMA, a multiply-add of pairs
        tensor = sum(n for base, n in count.items() if re.fullmatch(r"(U?TC)?[A-Z]?G?MMA", base))
        kernels.append(Sass(name=lines[0].strip(), instructions=len(operations) - count["NOP"], loads=loads, stores=stores,
                            local=count["LDL"] + count["STL"], tensor=tensor, barriers=count["BAR"], special=count["MUFU"],
                            double=sum(count[base] for base in ("DADD", "DMUL", "DFMA", "DSETP"))))
    return [kernel._replace(name=short(name)) for kernel, name in zip(kernels, demangled([kernel.name for kernel in kernels]))]


def sass_problems(kernels):
    """Kernels whose instructions break a rule, one line each."""
    found = []
    for kernel in kernels:
        where = f"{kernel.name} on {SASS_ARCH}"
        if kernel.local:
            found.append(f"{where}: {kernel.local} accesses to local memory")
        if kernel.tensor:
            found.append(f"{where}: {kernel.tensor} matrix products on tensor cores; {PAGE.name} says that no kernel has any")
        struct = kernel.name.split("<")[0]
        if struct not in WIDE_ACCESSES:
            found.append(f"{where}: WIDE_ACCESSES in {pathlib.Path(__file__).name} has no row for it")
            continue
        for what, least, of in zip(("loads", "stores"), WIDE_ACCESSES[struct], (kernel.loads, kernel.stores)):
            if of[128] < least:
                found.append(f"{where}: {of[128]} {what} of 128 bits, at least {least} are needed")
    return found


def between(numbers):
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least}–{most}"


def sass_table(kernels):
    """Markdown: a row per kernel template, with the minimum and maximum over its instances."""
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
    """The path of cuobjdump, if nvdisasm is in the same folder or on PATH; None if there is none."""
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
        sys.exit(f"error: no *.ptxas in {options.logs}; build the CUDA plugin with nvcc: tools/setup.sh --cuda")
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
        found.append(f"the objects in {options.logs} have other kernels for {arch} than the logs there; build the plugin again")
    if found:
        sys.exit("\n".join(f"error: {line}" for line in found))
    missing = f"objects for {SASS_ARCH}" if program else "cuobjdump"
    without = "" if sass else f"; their SASS was not checked: no {missing}"
    page = PAGE.read_text()
    made = replaced(page, table(kernels, threads_of))
    if sass:
        made = replaced(made, sass_table(sass), BEGIN_SASS, END_SASS)
    if options.write:
        PAGE.write_text(made)
    elif options.check:
        if made != page:
            sys.exit(f"error: the tables of {PAGE.relative_to(ROOT)} differ from this build; run "
                     "tools/cuda_kernels.py --write")
        print(f"{len(kernels)} kernels, none spills, all fit their limits{without}")
    else:
        print(table(kernels, threads_of))
        print(f"\n{sass_table(sass)}" if sass else f"\n{len(kernels)} kernels{without}")


if __name__ == "__main__":
    main()
