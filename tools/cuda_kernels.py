#!/usr/bin/env python3
"""What nvcc made of the cuda plugin's kernels: registers, spills, shared memory, and the occupancy they allow.

    tools/cuda_kernels.py                        the table, as Markdown
    tools/cuda_kernels.py --write                writes it to docs/cuda_kernels.md
    tools/cuda_kernels.py --check                fails where a kernel spills, does not fit its limits, or the table is old

Reads what ptxas said while the plugin was built (build/release/plugins/devices/cuda/*.ptxas, or --logs FOLDER). Threads of a
block and how many blocks a multiprocessor must hold are the kernels' own (kThreads, kBlocks). No GPU is needed.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[1]
KERNELS = ROOT / "plugins/devices/cuda/kernels"
LOGS = ROOT / "build/release/plugins/devices/cuda"
PAGE = ROOT / "docs/cuda_kernels.md"
BEGIN, END = "<!-- made by tools/cuda_kernels.py -->", "<!-- end -->"


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
    names = subprocess.run(["c++filt"], input="\n".join(kernel.name for kernel in kernels), text=True, capture_output=True,
                           check=True).stdout.splitlines()
    return [kernel._replace(name=short(name)) for kernel, name in zip(kernels, names)]


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


def replaced(page, text):
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + text + "\n" + END + rest.split(END)[1]


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
    found = problems(kernels, threads_of)
    if found:
        sys.exit("\n".join(f"error: {line}" for line in found))
    text = table(kernels, threads_of)
    if options.write:
        PAGE.write_text(replaced(PAGE.read_text(), text))
    elif options.check:
        if replaced(PAGE.read_text(), text) != PAGE.read_text():
            sys.exit(f"error: the table of {PAGE.relative_to(ROOT)} is not that of this build; run tools/cuda_kernels.py --write")
        print(f"{len(kernels)} kernels, none spills, all fit their limits")
    else:
        print(text)


if __name__ == "__main__":
    main()
