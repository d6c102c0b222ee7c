#!/usr/bin/env python3
"""tools/cuda_kernels.py: the rules of occupancy, what it finds in ptxas' words, and that the compiled kernels pass."""

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


def said(name=NAME, arch="sm_90", stack=0, stores=0, registers=32, shared=0):
    return cuda_kernels.read(SAID.format(name=name, arch=arch, stack=stack, stores=stores, registers=registers, shared=shared))


class CudaKernels(unittest.TestCase):

    def test_occupancy_follows_the_rules_of_the_programming_guide(self):
        ampere, hopper = cuda_kernels.LIMITS["sm_80"], cuda_kernels.LIMITS["sm_90"]
        # as NVIDIA's occupancy calculator has them
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
                              (said(registers=72), "holds 3 blocks, for want of registers"), (said(name="other"), "declares no")]:
            found = cuda_kernels.problems(kernels, DECLARED)
            self.assertEqual(len(found), 1, found)
            self.assertIn(word, found[0])

    def test_knows_what_every_kernel_declares(self):
        self.assertEqual(cuda_kernels.declared()["CrossEntropy"], (512, 2))
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

    @unittest.skipUnless(shutil.which("nvcc") and list(LOGS.glob("*.ptxas")), "the page's table is of nvcc 13.0, which is not here")
    def test_the_page_has_the_table_of_this_build(self):
        version = subprocess.run(["nvcc", "--version"], text=True, capture_output=True).stdout
        if "release 13.0" not in version:
            self.skipTest("the page's table is of nvcc 13.0, here is another")
        run = subprocess.run([SOURCE / "tools/cuda_kernels.py", "--check", "--logs", LOGS], text=True, capture_output=True)
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    unittest.main()
