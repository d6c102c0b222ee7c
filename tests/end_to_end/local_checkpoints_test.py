"""Local checkpoints ([checkpoint] local_folder): a restart continues from the newest step that is whole somewhere. Damaged and missing
parts are named; a copy, an older step or the ordinary checkpoint replaces them. Losses equal those of an undisturbed run bitwise."""

import shutil

from branches_test import BranchesCase
from checkpoint_case import header
from checkpoint_test import compared
from harness import TITAN, main, thorough
from restarts_test import fault


def flip(path):
    """Changes one byte of a tensor's data; returns the tensor's name."""
    content = bytearray(path.read_bytes())
    entries, start = header(path)
    name, entry = next((name, entry) for name, entry in sorted(entries.items()) if name != "__metadata__")
    content[start + entry["data_offsets"][0] + 5] ^= 64
    path.write_bytes(content)
    return name


class LocalCase(BranchesCase):
    """Killed in step 16: ordinary checkpoint of step 10, local ones of steps 12 and 14."""

    RANKS = 2

    def setUp(self):
        super().setUp()
        self.local = self.folder / "local"
        self.recipe = [*self.recipe, "--training.steps", "18", "--model.dim", "64", "--model.n_layers", "2", "--model.n_heads", "4",
                       "--model.n_kv_heads", "2", "--checkpoint.local_folder", str(self.local), "--checkpoint.local_interval", "2"]

    def start(self, *more, ranks=None, code=0, out=None):
        return self.run_command([TITAN, "launch", "--nproc", ranks or self.RANKS, "--", *self.command(*more, out=out)], code)

    def kill(self, *more):
        self.start(*more, *fault("kill", 16), code=137)
        self.assertEqual(self.steps_in(), [10])
        self.assertEqual(sorted(path.name for path in self.local.glob("*/*/*")), ["step-12", "step-14"])

    def part(self, step, rank, copy=False):
        """The file of weights of a rank in a local checkpoint."""
        folder, = self.local.glob(f"*/*/step-{step}")
        return (folder / "copies" if copy else folder) / f"weights-rank-{rank:05}.safetensors"

    def assert_like_undisturbed(self):
        straight = self.folder / "straight"
        self.start("--checkpoint.local_folder", self.folder / "other", out=straight)
        self.assertEqual(compared(self.out), compared(straight))


class LocalTest(LocalCase):
    def test_a_damaged_part_comes_from_its_copy(self):
        self.kill()
        damaged = self.part(14, 1)
        tensor = flip(damaged)
        run = self.start()
        self.assertEqual(self.resumed_steps(run.stderr), [14])
        self.assert_holds(run.stderr, "local checkpoint of step 14: rank 1's part in ", str(damaged), f"tensor '{tensor}'",
                          "was changed, somewhere in bytes", "; using the copy of rank 1's part in ",
                          "every 2 steps", "with copies on the same host")
        self.assert_like_undisturbed()
        self.assertEqual(list(self.local.glob("*/*/step-*")), [], "the last ordinary checkpoint makes local ones useless")

    @thorough
    def test_a_restart_of_the_launcher_goes_on_from_the_newest_local_step(self):
        for mode in ("disabled", "async"):
            with self.subTest(mode=mode):
                self.out, self.local = self.folder / mode, self.folder / f"local {mode}"
                where = ["--checkpoint.async_mode", mode, "--checkpoint.local_folder", self.local, "--training.steps", 18]
                run = self.run_command([TITAN, "launch", "--nproc", 2, "--max-restarts", 2, "--", *self.command(*where, *fault("kill", 16))])
                self.assertIn(self.resumed_steps(run.stderr), [[14], [12]] if mode == "async" else [[14]])
                # The kill may meet an asynchronous save: a part is then missing, and its copy serves. Parts that are there are whole.
                self.assertNotIn("was changed" if mode == "async" else "using", run.stderr)
                self.assert_like_undisturbed()
                shutil.rmtree(self.folder / "straight")

    @thorough
    def test_damage_of_part_and_copy_falls_to_the_older_step_and_then_to_the_ordinary_checkpoint(self):
        self.kill()
        saved = self.folder / "saved"
        for steps, resumed in (([14], 12), ([12, 14], 10)):
            shutil.rmtree(saved, ignore_errors=True)
            if steps == [14]:
                shutil.copytree(self.local, self.folder / "kept local")
                shutil.copytree(self.out, self.folder / "kept out")
            else:
                for name in ("local", "out"):
                    shutil.rmtree(self.folder / name)
                    shutil.copytree(self.folder / f"kept {name}", self.folder / name)
            for step in steps:
                tensors = [flip(self.part(step, 1, copy)) for copy in (False, True)]
            run = self.start()
            self.assertEqual(self.resumed_steps(run.stderr), [resumed])
            for step in steps:
                line, = [line for line in run.stderr.splitlines() if f"the local checkpoint of step {step} cannot be used" in line]
                self.assertEqual(line.count("was changed"), 2, line)
                self.assert_holds(line, "rank 1's part in ", "the copy of rank 1's part in ", *tensors)
            self.assert_like_undisturbed()
            shutil.rmtree(self.folder / "straight")

    @thorough
    def test_missing_files_count_as_damage(self):
        self.kill()
        self.part(14, 0).unlink()
        (self.part(14, 1).parent / "part-rank-00001.json").unlink()
        run = self.start()
        self.assertEqual(self.resumed_steps(run.stderr), [14])
        self.assert_holds(run.stderr, "weights-rank-00000.safetensors", "rank 1's own part was not found; using the copy of rank 1's part")
        self.assert_like_undisturbed()

    @thorough
    def test_another_number_of_ranks_reads_it_too(self):
        self.kill()
        run = self.start(ranks=1)
        self.assertEqual(self.resumed_steps(run.stderr), [14])
        self.assertEqual([line for line in compared(self.out)], list(range(1, 19)))

    @thorough
    def test_before_the_first_ordinary_checkpoint(self):
        self.start("--checkpoint.interval", 100, *fault("kill", 8), code=137)
        self.assertEqual(self.steps_in(), [])
        run = self.start("--checkpoint.interval", 100)
        self.assertEqual(self.resumed_steps(run.stderr), [6])
        self.assert_like_undisturbed()

    @thorough
    def test_a_new_branch_ignores_it(self):
        self.kill()
        run = self.start("--checkpoint.load_step", 10)
        self.assertEqual(self.resumed_steps(run.stderr), [10])

    @thorough
    def test_one_rank_has_no_copies(self):
        self.start(*fault("kill", 32, rank=0), ranks=1, code=137)
        run = self.start(ranks=1)
        self.assertEqual(self.resumed_steps(run.stderr), [14])
        self.assert_holds(run.stderr, "without copies")


if __name__ == "__main__":
    main()
