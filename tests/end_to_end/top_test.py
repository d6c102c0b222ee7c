#!/usr/bin/env python3
"""titan top on made-up status files, in a pseudo-terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata

import harness
from harness import ROOT, TITAN, titan
from made_up_run import MadeUpRun


def columns(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


class Terminal:
    """A program in a terminal; its output is read until a pattern appears."""

    def __init__(self, *command, width=80, height=24):
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.environ.pop("NO_COLOR", None)
            os.execv(command[0], list(map(str, command)))
        self.resize(width, height)
        self.output, self.code = "", None

    def resize(self, width, height):
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def until(self, pattern):
        """Removes and returns the output up to and including `pattern`."""
        deadline = time.monotonic() + harness.HANG
        while not (found := re.search(pattern, self.output, re.S)):
            if time.monotonic() > deadline or not self.read(deadline - time.monotonic()):
                raise AssertionError(f"{pattern!r} does not come; there is {self.output!r}")
        drawn, self.output = self.output[:found.end()], self.output[found.end():]
        return drawn

    def read(self, seconds=harness.HANG):
        if not select.select([self.end], [], [], max(0, seconds))[0]:
            return False
        try:
            text = os.read(self.end, 1 << 16)
        except OSError:  # the other end is closed
            return False
        self.output += text.decode()
        return bool(text)

    def type(self, keys):
        os.write(self.end, keys.encode())

    def flags(self):
        return termios.tcgetattr(self.end)[3]

    def finish(self):
        while self.read():
            pass
        self.code = os.waitpid(self.pid, 0)[1]
        os.close(self.end)
        return self.output


def frames(text):
    """The lines of each drawn screen."""
    return [[re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in frame.split("\r\n")] for frame in text.split("\x1b[H")[1:]]


class Top(harness.Case):
    def run_of(self, ranks, **options):
        run = MadeUpRun(self.folder / "run", ranks=ranks, pipeline=False, **options)
        run.now = time.time() + 3600  # heartbeats in the future, which do not age while the test runs
        return run

    def once(self, run, code=0):
        shown = titan("top", run.folder, "--once")
        self.assertEqual(shown.returncode, code, shown.stdout + shown.stderr)
        return shown.stdout.splitlines()

    def line(self, lines, rank):
        return next(line for line in lines if re.match(rf"\s*{rank}\s", line))

    def test_tells_all_ranks_and_the_job(self):
        run = self.run_of(4)
        run.status(120, "running")
        lines = self.once(run)
        self.assert_holds("\n".join(lines[:3]), "4 ranks: 4 working", "step 120 of 200 (60 %)", "41,235 tokens/s", "0.40 s a step",
                          "loss 2.5000", "32 s left")
        self.assert_holds(self.line(lines, 2), "forward of microbatch 2", "3.12G 20%")

    def test_marks_who_is_silent_who_others_wait_for_and_who_is_behind(self):
        run = self.run_of(6)
        run.status(120, "running", waiting_seconds=9.0, doing="gradients")
        run.rank_status(1, step=120, doing="data", waiting_seconds=0.0)
        run.rank_status(2, step=110, waiting_seconds=9.0)
        run.rank_status(3, step=120, time=time.time() - 60)
        run.rank_status(5, step=120, state="ended")
        lines = self.once(run, code=1)
        self.assert_holds(lines[0], "1 SILENT", "1 AWAITED", "1 BEHIND", "1 ended")
        order = [int(line.split()[0]) for line in lines if re.match(r"\s*\d+\s", line)]
        self.assertEqual(order, [3, 1, 2, 0, 4, 5])  # the worst first
        self.assert_holds(self.line(lines, 3), "! SILENT 1:0")
        self.assert_holds(self.line(lines, 1), "! others wait")
        self.assert_holds(self.line(lines, 2), "! behind")

    def test_names_the_rank_that_is_slow_in_every_step(self):
        run = self.run_of(4)
        run.status(120, "running", seconds={"forward": 1.0, "communication": 0.5})
        run.rank_status(2, step=120, seconds={"forward": 1.45, "communication": 0.05})
        lines = self.once(run)
        self.assert_holds(self.line(lines, 2), "! slowest")
        self.assertEqual(sum("! slowest" in line for line in lines), 1)

    def test_hostile_and_wide_texts_keep_their_place(self):
        run = self.run_of(3)
        run.status(120, "running")
        run.rank_status(0, step=120, doing="\x1b[2J\x1b]0;owned\x07\u202e" + "x" * 500)
        run.rank_status(1, step=120, doing="前向传播" * 20)
        plain = "\n".join(self.once(run))
        self.assertNotIn("\x1b", plain)
        self.assertNotIn("\u202e", plain)
        with_terminal = Terminal(TITAN, "top", run.folder)
        drawn = with_terminal.until(r"q quit.*?\x1b\[\?2026l")
        with_terminal.type("q")
        with_terminal.finish()
        for line in frames(drawn)[-1]:
            self.assertLessEqual(columns(line), 80, line)
        wide = next(line for line in frames(drawn)[-1] if "前" in line)
        usual = next(line for line in frames(drawn)[-1] if line.startswith("    2 "))
        self.assertEqual(columns(wide[:wide.index("3.06G")]), columns(usual[:usual.index("3.12G")]))

    def test_a_terminal_is_put_back_whatever_ends_it(self):
        run = self.run_of(2)
        run.status(1, "running")
        for how, code in (("q", 0), (signal.SIGINT, 0), (signal.SIGTERM, signal.SIGTERM), (signal.SIGHUP, signal.SIGHUP)):
            terminal = Terminal(TITAN, "top", run.folder)
            terminal.until(r"q quit.*?\x1b\[\?2026l")
            self.assertFalse(terminal.flags() & termios.ECHO)
            if how == "q":
                terminal.type("q")
            else:
                os.kill(terminal.pid, how)
            rest = terminal.until(re.escape("\x1b[?25h\x1b[?1049l"))
            terminal.finish()
            self.assertEqual(terminal.code, code, how)
            self.assertNotIn("error", rest)

    def test_a_stop_gives_the_terminal_back_and_goes_on(self):
        run = self.run_of(2)
        run.status(1, "running")
        terminal = Terminal(TITAN, "top", run.folder)
        terminal.until(r"q quit.*?\x1b\[\?2026l")
        terminal.type("\x1a")  # control-Z
        terminal.until(re.escape("\x1b[?1049l"))
        self.assertTrue(os.WIFSTOPPED(os.waitpid(terminal.pid, os.WUNTRACED)[1]))
        self.assertTrue(terminal.flags() & termios.ECHO)
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.until(r"\x1b\[\?1049h.*q quit")
        terminal.type("q")
        terminal.finish()
        self.assertEqual(terminal.code, 0)

    def test_many_ranks_have_pages_and_the_worst_come_first(self):
        run = self.run_of(512)
        run.status(120, "running")
        run.rank_status(500, step=120, time=time.time() - 100)
        terminal = Terminal(TITAN, "top", run.folder, width=80, height=24)
        first = frames(terminal.until(r"page 1 of \d+.*?\x1b\[\?2026l"))[-1]
        self.assertLessEqual(len(first), 24)
        ranks = [line.split()[0] for line in first if re.match(r"\s*\d+\s", line)]
        self.assertEqual(ranks[:3], ["500", "0", "1"])
        terminal.type(" ")
        second = frames(terminal.until(r"page 2 of \d+.*?\x1b\[\?2026l"))[-1]
        self.assertEqual(next(line.split()[0] for line in second if re.match(r"\s*\d+\s", line)), str(len(ranks) - 1))
        terminal.type("o")
        by_rank = frames(terminal.until(r"by rank, page 1.*?\x1b\[\?2026l"))[-1]
        self.assertEqual(next(line.split()[0] for line in by_rank if re.match(r"\s*\d+\s", line)), "0")
        terminal.resize(120, 60)
        os.kill(terminal.pid, signal.SIGWINCH)
        terminal.until(r"page 1 of 10 .*?\x1b\[\?2026l")
        terminal.type("q")
        terminal.finish()
        self.assertEqual(terminal.code, 0)

    def test_it_follows_the_run_and_changes_nothing_in_it(self):
        run = self.run_of(2)
        run.status(7, "running")
        for path in (run.folder / "status").iterdir():
            path.chmod(0o444)
        before = {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")}
        terminal = Terminal(TITAN, "top", run.folder)
        terminal.until("step 7 of 200")
        self.assertEqual({path: path.stat().st_mtime_ns for path in run.folder.rglob("*")}, before)
        for path in (run.folder / "status").iterdir():
            path.chmod(0o644)
        (run.folder / "status/rank_1.json").write_text('{"rank":1,"st')  # truncated
        run.rank_status(0, step=9)
        terminal.until("1 unreadable.*step 9 of 200")
        run.rank_status(1, step=9)
        terminal.until("2 ranks: 2 working")
        terminal.type("q")
        terminal.finish()

    def test_goodput_of_the_header_is_that_of_the_report(self):
        run = MadeUpRun(self.folder / "run", ranks=2, pipeline=False)
        run.session(0, 60, "killed").session(50, 100, "finished")
        shown = titan("top", run.folder, "--once").stdout
        page = self.folder / "report.html"
        self.assertEqual(titan("report", run.folder, "--out", page).returncode, 0)
        goodput = json.loads(re.search(r'"goodput":(\{[^}]*\})', page.read_text())[1])
        self.assertIn(f"goodput {100 * goodput['productive'] / goodput['total']:.1f} %", shown)

    def test_errors_say_what_to_do(self):
        missing = titan("top", self.folder / "nowhere", "--once")
        self.assertEqual(missing.returncode, 1)
        self.assert_holds(missing.stderr, "there is no folder", "job.dump_folder")
        empty = titan("top", self.folder, "--once")
        self.assertEqual(empty.returncode, 1)
        self.assert_holds(empty.stderr, "no rank has written a status")


if __name__ == "__main__":
    harness.main()
