"""A logger that fails warns once and is off; training and the other loggers go on."""

import subprocess

from harness import HANG, ROOT, TINY, TITAN, Case, environment, losses, main


class LoggerFailureTest(Case):
    def run_to_the_end(self, *arguments):
        run = self.train(*arguments)
        self.assertIn("training completed after step 3", run.stderr)
        self.assertEqual(len([line for line in run.stdout.splitlines() if "loss" in line]), 3, run.stdout)
        self.assertEqual(run.stderr.count("is off from here on"), 1, run.stderr)
        return run.stderr

    def test_a_full_disk_stops_only_the_file(self):
        self.out.mkdir()
        (self.out / "metrics.jsonl").symlink_to("/dev/full")
        said = self.run_to_the_end()
        self.assert_holds(said, "logger 'jsonl' failed", "metrics.jsonl", "No space left on device")
        self.assertTrue(list((self.out / "tb").rglob("events.out.tfevents.*")))

    def test_a_folder_that_cannot_be_made_stops_only_its_logger(self):
        self.out.mkdir()
        (self.out / "tb").write_text("in the way")
        said = self.run_to_the_end()
        self.assert_holds(said, "logger 'tensorboard' failed", "tb")
        self.assertEqual(len(losses(self.out)), 3)

    def test_standard_output_that_is_full_stops_only_the_console(self):
        with open("/dev/full", "w") as full:
            run = subprocess.run([TITAN, "train", *TINY, "--job.dump_folder", str(self.out)], cwd=ROOT,
                                 env=environment(), stdout=full, stderr=subprocess.PIPE, text=True, timeout=HANG)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_holds(run.stderr, "logger 'console' failed", "training completed after step 3")
        self.assertEqual(len(losses(self.out)), 3)


if __name__ == "__main__":
    main()
