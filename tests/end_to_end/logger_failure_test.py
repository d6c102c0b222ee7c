"""A failing logger warns once and is disabled, a hanging one is abandoned; training and the other loggers continue."""

import fcntl
import os
import resource
import subprocess

from harness import HANG, ROOT, TINY, TITAN, Case, environment, losses, main, metrics, without_privileges


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

    def start(self, *arguments, **options):
        """Runs the tiny job until it ends, with options of subprocess; returns standard error."""
        run = subprocess.run([TITAN, "train", *TINY, "--job.dump_folder", str(self.out), *arguments], cwd=ROOT, env=environment(),
                             stderr=subprocess.PIPE, text=True, timeout=HANG, **options)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stderr

    def test_files_that_may_not_grow_end_where_the_limit_is(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        said = self.start("--training.steps", "40", stdout=subprocess.PIPE, preexec_fn=limit)
        self.assert_holds(said, "logger 'jsonl' failed", "logger 'tensorboard' failed", "File too large", "training completed after step 40")
        self.assertEqual(said.count("is off from here on"), 2, said)
        kept = metrics(self.out)  # complete lines
        self.assertEqual([line["step"] for line in kept], list(range(1, len(kept) + 1)))
        self.assertLess(len(kept), 40)
        self.assertIn(f"logger 'jsonl' missed {40 - len(kept) - 1} entries after it had failed", said)

    def test_a_folder_that_may_not_be_written_stops_only_its_logger(self):
        (self.out / "tb").mkdir(parents=True)
        (self.out / "tb").chmod(0o555)
        said = self.start(stdout=subprocess.PIPE, **without_privileges())
        self.assert_holds(said, "logger 'tensorboard' failed", "tb", "Permission denied", "training completed after step 3")
        self.assertEqual(said.count("is off from here on"), 1, said)
        self.assertEqual(len(losses(self.out)), 3)

    def test_a_pipe_that_nobody_opens_to_read_stops_only_its_logger(self):
        self.out.mkdir()
        os.mkfifo(self.out / "metrics.jsonl")
        said = self.run_to_the_end()
        self.assert_holds(said, "logger 'jsonl' failed", "metrics.jsonl", "No such device or address")

    def test_standard_output_that_nobody_reads_holds_nobody(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        try:
            said = self.start("--training.steps", "80", stdout=writer)
        finally:
            os.close(writer)
        self.assert_holds(said, "training completed after step 80",
                          "logger 'console' did not finish within 10 s and was abandoned")
        self.assertEqual(said.count("logger 'console'"), 1, said)
        self.assertEqual(len(losses(self.out)), 80)

    def test_standard_output_that_is_full_stops_only_the_console(self):
        with open("/dev/full", "w") as full:
            run = subprocess.run([TITAN, "train", *TINY, "--job.dump_folder", str(self.out)], cwd=ROOT,
                                 env=environment(), stdout=full, stderr=subprocess.PIPE, text=True, timeout=HANG)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_holds(run.stderr, "logger 'console' failed", "training completed after step 3")
        self.assertEqual(len(losses(self.out)), 3)


if __name__ == "__main__":
    main()
