"""tests/convergence: its runs learn and resume, and deviating results are reported.

The comparison of the curves with torchtitan's is a long check: docs/results/convergence.md."""

import copy
import os
import subprocess
import sys

import harness

sys.path.insert(0, str(harness.ROOT / "tests/convergence"))
import cells  # noqa: E402
import page  # noqa: E402

PLAIN = cells.Cell("debug")


def curve(last, shift=0.0):
    """A curve from 8 down to `last` over the steps of the debug model, shifted up by `shift`."""
    steps = cells.MODELS["debug"].steps
    return {"losses": [8 + shift + (last - 8) * i / (steps - 1) for i in range(steps)], "program": "titan", "seconds": 1.0}


def made_up():
    return {PLAIN: curve(4), PLAIN.but(seed=43): curve(4.02), PLAIN.but(layout="TP 2"): curve(4), PLAIN.but(numbers="MX"): curve(4.05),
            PLAIN.but(trainer="torchtitan"): curve(4)}


class Verdicts(harness.Case):
    def failures(self, **changes):
        """The failures reported for made-up curves, some of them changed."""
        results = made_up()
        for name, change in changes.items():
            cell = {"plain": PLAIN, "tp": PLAIN.but(layout="TP 2"), "mx": PLAIN.but(numbers="MX"),
                    "theirs": PLAIN.but(trainer="torchtitan")}[name]
            results[cell] = change
        return {cell: found for cell, found in page.judge(results).items() if any(text.startswith("FAILED") for text in found)}

    def bent(self, step, by):
        """The plain curve with one loss that is off."""
        result = copy.deepcopy(curve(4))
        result["losses"][step] += by
        return result

    def test_what_is_where_it_should_be_passes(self):
        self.assertEqual(self.failures(), {})
        self.assertEqual(self.failures(tp=self.bent(9, 0.9e-4), theirs=self.bent(9, 0.9e-4)), {})
        self.assertEqual(self.failures(tp=self.bent(500, 1.0)), {})  # one step far from the start and from the end

    def test_early_steps_are_judged(self):
        self.assertEqual(list(self.failures(tp=self.bent(9, 1.1e-4))), [PLAIN.but(layout="TP 2")])
        self.assertEqual(list(self.failures(theirs=self.bent(0, 1.1e-4))), [PLAIN.but(trainer="torchtitan")])

    def test_the_end_is_judged(self):
        spread = page.spread(made_up(), PLAIN)
        self.assertAlmostEqual(spread, 0.02, delta=1e-3)
        for name in ("tp", "theirs"):
            for share, count in ((0.9, 0), (1.1, 1)):
                late = curve(4)
                late["losses"][-50:] = [loss + share * spread for loss in late["losses"][-50:]]
                self.assertEqual(len(self.failures(**{name: late})), count)
        self.assertEqual(list(self.failures(mx=curve(4.1))), [PLAIN.but(numbers="MX")])

    def test_runs_that_learn_nothing_or_fail_are_failures(self):
        self.assertIn("learnt nothing", str(self.failures(plain=curve(7.5))[PLAIN]))
        self.assertIn("exit code 3", str(self.failures(tp={"failed": "exit code 3: titan", "program": "", "seconds": 0})))

    def test_what_cannot_be_judged_is_said(self):
        results = {PLAIN.but(layout="TP 2"): curve(4)}
        self.assertIn("not judged", page.judge(results)[PLAIN.but(layout="TP 2")][0])

    def test_plans_hold_what_they_should(self):
        full = cells.PLANS["full"]()
        self.assertEqual(len(full), len(set(full)))
        self.assertEqual(len(full), 2 * (3 * 5 * 4 * 2 + 3 * 2))
        standard = cells.PLANS["standard"]()
        self.assertLessEqual(set(standard), set(full))
        for cell in standard:
            if page.reference_of(cell):
                self.assertIn(page.reference_of(cell), standard, cell)


class Runs(harness.Case):
    ONLY = ["--only", "42, 1 rank, fp32, AdamW", "--only", "43, 1 rank, fp32, AdamW", "--only", "FSDP 2"]

    def script(self, *arguments):
        return subprocess.run([sys.executable, str(harness.ROOT / "tests/convergence/convergence.py"), "--plan", "quick", "--results",
                               str(self.folder / "curves"), *map(str, arguments)], env=os.environ, capture_output=True, text=True,
                              timeout=harness.HANG)

    def test_a_plan_is_run_in_pieces_judged_and_shown(self):
        first = self.script(*self.ONLY, "--limit", 1)
        self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
        self.assert_holds(first.stdout, "1 of 11 curves are there")
        kept = {path.name: path.stat().st_mtime_ns for path in (self.folder / "curves").glob("*.json")}
        self.assertEqual(len(kept), 1)

        note = self.write("note.md", "before\n<!-- curves -->\nold\n<!-- end of curves -->\nafter\n")
        rest = self.script(*self.ONLY, "--write", note)
        self.assertEqual(rest.returncode, 0, rest.stdout + rest.stderr)
        for name, when in kept.items():
            self.assertEqual((self.folder / "curves" / name).stat().st_mtime_ns, when, "was made again")
        text = note.read_text()
        self.assert_holds(text, "before\n", "after\n", "| tiny | Titan | FSDP 2 | fp32 | AdamW | 42 |", "Not made: ")
        self.assertNotIn("old", text)
        picture = self.folder / "convergence_tiny.png"
        self.assertTrue(1000 < picture.stat().st_size < 100_000)

        self.assertEqual(self.script(*self.ONLY, "--complete").returncode, 1)
        # a run that diverged
        path = self.folder / "curves" / cells.Cell("tiny", layout="FSDP 2").file
        path.write_text(path.read_text().replace('"losses": [8.', '"losses": [9.'))
        judged = self.script(*self.ONLY)
        self.assertEqual(judged.returncode, 1)
        self.assert_holds(judged.stdout, "tiny, 42, FSDP 2, fp32, AdamW, Titan: FAILED")


if __name__ == "__main__":
    harness.main()
