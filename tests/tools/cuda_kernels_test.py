#!/usr/bin/env python3
"""tools/cuda_kernels.py: the rules of occupancy, parsing the output of ptxas and cuobjdump, and the limits of the real
kernels."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
LOGS = pathlib.Path(os.environ["TITAN_CUDA_LOGS"])
sys.path.insert(0, str(SOURCE / "tools"))
import cuda_kernels  # noqa: E402

NAME = "_ZN5titan4cuda12kernel_entryINS0_7SumRowsIfEEEEvT_"
SAID = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{name}' for '{arch}'
ptxas info    : Function properties for {name}
    {stack} bytes stack frame, {stores} bytes spill stores, 0 bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers, {shared} bytes smem
"""
DECLARED = {"SumRows": (256, 4)}
SASS = """
Fatbin elf code:
================
arch = sm_90

	code for sm_90
		Function : _ZN5titan4cuda12kernel_entryINS0_{struct}IfEEEEvT_
	.headerflags	@"EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
{lines}
"""


def said(name=NAME, arch="sm_90", stack=0, stores=0, registers=32, shared=0):
    return cuda_kernels.read(SAID.format(name=name, arch=arch, stack=stack, stores=stores, registers=registers, shared=shared))


def disassembled(*operations, struct="13SwigluForward"):
    """cuobjdump's output for a kernel with these instructions."""
    lines = "\n".join(f"        /*{16 * i:04x}*/  {text} ;  /* 0x00000a00ff017b82 */\n{' ' * 60}/* 0x000ff00000000800 */"
                      for i, text in enumerate(operations))
    kernel, = cuda_kernels.read_sass(SASS.format(struct=struct, lines=lines))
    return kernel


WIDE = ["LDG.E.128 R4, desc[UR4][R2.64]", "@P0 LDG.E.128.CONSTANT R8, desc[UR4][R2.64]", "@!P1 STG.E.128 desc[UR4][R2.64], R4"]


class CudaKernels(unittest.TestCase):

    def test_occupancy_follows_the_rules_of_the_programming_guide(self):
        ampere, hopper = cuda_kernels.LIMITS["sm_80"], cuda_kernels.LIMITS["sm_90"]
        # as in NVIDIA's occupancy calculator
        for limits, threads, registers, shared, blocks, least in [
                (ampere, 256, 32, 0, 8, "threads"),
                (ampere, 256, 33, 0, 6, "registers"),
                (ampere, 256, 64, 0, 4, "registers"),
                (ampere, 256, 255, 0, 1, "registers"),
                (ampere, 32, 16, 0, 32, "blocks"),
                (ampere, 1024, 64, 0, 1, "registers"),
                (ampere, 128, 32, 48 * 1024, 3, "shared memory"),
                (hopper, 128, 32, 48 * 1024, 4, "shared memory"),
                (hopper, 256, 32, 32800, 6, "shared memory")]:
            self.assertEqual(cuda_kernels.resident_blocks(limits, threads, registers, shared), (blocks, least), (threads, registers))

    def test_reads_what_ptxas_says(self):
        kernel, = said(registers=47, shared=32800, arch="sm_100")
        self.assertEqual(kernel, cuda_kernels.Kernel("SumRows<float>", "sm_100", 47, 0, 0, 32800))

    def test_finds_spills_stacks_and_kernels_that_do_not_fit(self):
        self.assertEqual(cuda_kernels.problems(said(), DECLARED), [])
        for kernels, word in [(said(stores=16), "spilled"), (said(stack=8), "stack"), (said(shared=50000), "are allowed"),
                              (said(registers=72), "holds 3 blocks, limited by registers"), (said(name="other"), "declares no")]:
            found = cuda_kernels.problems(kernels, DECLARED)
            self.assertEqual(len(found), 1, found)
            self.assertIn(word, found[0])

    def test_counts_instructions(self):
        kernel = disassembled(*WIDE, "LDG.E.U16 R0, desc[UR4][R2.64]", "LDG.E R0, desc[UR4][R2.64]", "STG.E.64 [R2], R4",
                              "LDS R0, [R1]", "HFMA2.MMA R1, -RZ, RZ, 0, 0", "MUFU.EX2 R1, R1", "BAR.SYNC.DEFER_BLOCKING 0x0",
                              "@!UP0 UIADD3 UR4, UR4, 0x1, URZ", "DFMA R2, R2, R4, R6", "EXIT", "NOP", "NOP")
        self.assertEqual((kernel.name, kernel.instructions, kernel.local, kernel.tensor), ("SwigluForward<float>", 13, 0, 0))
        self.assertEqual((kernel.loads, kernel.stores), ({128: 2, 32: 1, 16: 1}, {128: 1, 64: 1}))
        self.assertEqual((kernel.barriers, kernel.special, kernel.double), (1, 1, 1))
        for operation in ["HMMA.16816.F32 R4, R8, R12, R4", "HGMMA.64x256x16.F32 R24, gdesc[UR4], R24",
                          "IMMA.16832.S8.S8 R4, R8", "QGMMA.64x128x32.F32.E4M3.E4M3 R24, gdesc[UR4], R24",
                          "DMMA.884 R4, R8, R12, R4"]:
            self.assertEqual(disassembled(operation).tensor, 1, operation)

    def test_finds_local_memory_tensor_cores_and_narrow_accesses(self):
        self.assertEqual(cuda_kernels.sass_problems([disassembled(*WIDE)]), [])
        for kernel, word in [(disassembled(*WIDE, "STL.64 [R1], R2"), "1 accesses to local memory"),
                             (disassembled(*WIDE, "HGMMA.64x256x16.F32 R24, gdesc[UR4], R24"), "1 matrix products"),
                             (disassembled(*WIDE[1:]), "1 loads of 128 bits, at least 2"),
                             (disassembled(*WIDE[:2], "STG.E.64 [R2], R4"), "0 stores of 128 bits, at least 1"),
                             (disassembled(*WIDE, struct="5Other"), "has no row for it")]:
            found = cuda_kernels.sass_problems([kernel])
            self.assertEqual(len(found), 1, found)
            self.assertIn(word, found[0])

    def test_knows_what_every_kernel_declares(self):
        self.assertEqual(cuda_kernels.declared()["CrossEntropy"], (512, 2))
        self.assertEqual(set(cuda_kernels.WIDE_ACCESSES), set(cuda_kernels.declared()))
        structs = set()
        for line in (cuda_kernels.KERNELS / "instances.h").read_text().splitlines():
            if line.startswith("  X("):
                structs.add(line[4:].split("<")[0])
        self.assertEqual(structs, set(cuda_kernels.declared()))

    def test_without_a_build_it_says_what_to_build(self):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([SOURCE / "tools/cuda_kernels.py", "--logs", folder], text=True, capture_output=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("no *.ptxas in", run.stderr)

    @unittest.skipUnless(list(LOGS.glob("*.ptxas")), f"nvcc compiled no kernels here: no *.ptxas in {LOGS}")
    def test_the_compiled_kernels_neither_spill_nor_exceed_their_limits(self):
        run = subprocess.run([SOURCE / "tools/cuda_kernels.py", "--logs", LOGS], text=True, capture_output=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("`AdamW<BFloat16, BFloat16, float>`", run.stdout)
        if cuda_kernels.find_cuobjdump():
            self.assertIn("| `AdamW` | 6 |", run.stdout)
        else:
            self.skipTest("the SASS part: no cuobjdump in TITAN_CUOBJDUMP, on PATH, in a toolkit or a wheel of triton")

    @unittest.skipUnless(shutil.which("nvcc") and list(LOGS.glob("*.ptxas")), "the page's table is of nvcc 13.0, which is not here")
    def test_the_page_has_the_table_of_this_build(self):
        version = subprocess.run(["nvcc", "--version"], text=True, capture_output=True).stdout
        if "release 13.0" not in version:
            self.skipTest("the page's table is of nvcc 13.0, here is another")
        kernels = [kernel for log in LOGS.glob("*.ptxas") for kernel in cuda_kernels.read(log.read_text())]
        if {kernel.arch for kernel in kernels} != {"sm_80", "sm_90", "sm_100"}:
            self.skipTest("the page's table is of the default architectures, this build has others")
        run = subprocess.run([SOURCE / "tools/cuda_kernels.py", "--check", "--logs", LOGS], text=True, capture_output=True)
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    unittest.main()
