"""The output of a run on a terminal: its progress at the bottom, complete log lines and metrics above it. A pseudo-terminal
(pty) receives the bytes; the package pyte, a terminal emulator, renders them."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pyte
from harness import DEBUG_CONFIG, HANG, ROOT, TITAN, Case, environment, losses, main, thorough

RECIPE = ["train", "--job.config_file", DEBUG_CONFIG, "--training.seq_len", "64", "--metrics.log_freq", "5"]
LINE = re.compile(r"step:\s+\d+  loss: +[\d.]+  grad_norm: +[\d.]+  memory: +[\d.]+GiB\([\d.]+%\)  tps: [\d,]+  tflops: [\d.]+$")
PROGRESS = re.compile(r"step (\d+)/(\d+) (\d+)%")


class Terminal:
    """A program on its own terminal; `output` and `errors` choose the streams that go there."""

    def __init__(self, *arguments, columns=160, output=True, errors=True, **env):
        self.master, slave = pty.openpty()
        self.shown, self.columns = b"", columns
        self.resize(columns)
        variables = environment(TERM="xterm-256color")
        for name in ("NO_COLOR", "COLUMNS"):
            variables.pop(name, None)
        variables.update(env)
        self.process = subprocess.Popen([TITAN, *map(str, arguments)], cwd=ROOT, env=variables, stdin=subprocess.DEVNULL,
                                        stdout=slave if output else subprocess.DEVNULL, stderr=slave if errors else subprocess.DEVNULL)
        os.close(slave)

    def resize(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 200, columns, 0, 0))

    def read(self):
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:  # EIO: the other end is closed
            data = b""
        self.shown += data
        return bool(data)

    def read_until(self, text):
        while text not in self.shown:
            if not self.read():
                raise AssertionError(f"the run ended before it showed {text!r}: {self.shown.decode()}")

    def finish(self):
        while self.read():
            pass
        os.close(self.master)
        return self.process.wait(HANG)

    def screens(self):
        """The visible lines after each piece of output that ends with a newline or a drawn line."""
        screen = pyte.Screen(self.columns, 200)
        stream = pyte.ByteStream(screen)
        for piece in re.split(rb"(?<=\n)|(?<=\x1b\[K)", self.shown):
            stream.feed(piece)
            yield [line.rstrip() for line in screen.display[:screen.cursor.y + 1]]


class TerminalTest(Case):
    def run_on_terminal(self, *arguments, code=0, **options):
        run = Terminal(*RECIPE, "--job.dump_folder", self.out, *arguments, **options)
        self.assertEqual(run.finish(), code, run.shown.decode())
        return run

    def assert_lines_are_whole(self, lines):
        """Checks that there are only metrics and log lines; returns the metrics."""
        metrics = [line for line in lines if line.startswith("step:")]
        for line in metrics:
            self.assertRegex(line, LINE)
        others = [line for line in lines if line and not line.startswith(("step:", "[titan] 2"))
                  and line != "stopping after this step; a second signal stops at once"]
        self.assertEqual(others, [], lines)
        return metrics

    def test_progress_is_at_the_bottom_and_all_else_whole_above(self):
        run = self.run_on_terminal("--training.steps", 40, "--checkpoint.enable", "--checkpoint.interval", 10)
        steps = []
        for lines in run.screens():
            progress = [i for i, line in enumerate(lines) if PROGRESS.match(line)]
            if not progress:
                continue
            self.assertEqual(progress, [len(lines) - 1], lines)
            step, last, share = map(int, PROGRESS.match(lines[-1]).groups())
            self.assertEqual((last, share), (40, 100 * step // 40))
            steps.append(step)
            self.assert_lines_are_whole(lines[:-1])
        self.assertGreater(len(set(steps)), 1, run.shown)
        self.assertEqual(steps, sorted(steps))
        *_, last = run.screens()
        self.assertEqual([int(line.split()[1]) for line in self.assert_lines_are_whole(last)], [1, 5, 10, 15, 20, 25, 30, 35, 40])
        self.assertIn("training completed after step 40", last[-2])
        self.assertRegex(run.shown.decode(), r"\d+s left")
        self.assertRegex(run.shown.decode(), r"[\d,]+ tokens/s")
        self.assertEqual(len(losses(self.out)), 9)

    def test_the_line_is_never_wider_than_the_terminal(self):
        for columns in (20, 41):
            run = self.run_on_terminal("--training.steps", 10, columns=columns, errors=False)
            drawn = re.findall(r"\r(?:\x1b\[[\d;]*m)*(step [^\r]*)\x1b\[K", run.shown.decode())
            self.assertTrue(drawn, run.shown)
            for line in drawn:
                self.assertLess(len(re.sub(r"\x1b\[[\d;]*m", "", line)), columns)
            self.assertTrue(any(len(re.sub(r"\x1b\[[\d;]*m", "", line)) == columns - 1 for line in drawn), drawn)

    @thorough
    def test_a_terminal_that_is_resized_gets_lines_of_its_new_width(self):
        run = Terminal(*RECIPE, "--job.dump_folder", self.out, "--training.steps", 1000000, errors=False)
        run.read_until(b"tokens/s")
        run.resize(20)
        run.shown = b""
        while not re.search(rb"\rstep \d+/1000000 0%\x1b|\r\x1b\[31mstep \d+/1000000 0%\x1b\[39m\x1b\[K", run.shown) and run.read():
            pass
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.finish(), 130, run.shown)

    def test_a_run_that_is_stopped_leaves_a_clean_terminal(self):
        run = Terminal(*RECIPE, "--job.dump_folder", self.out, "--training.steps", 1000000)
        run.read_until(b" left")
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.finish(), 143, run.shown)
        *_, last = run.screens()
        self.assert_lines_are_whole(last)
        self.assertIn("stopped by SIGTERM", last[-2])

    def test_plain_lines_where_the_terminal_or_the_user_wants_no_more(self):
        dumb = self.run_on_terminal("--training.steps", 2, TERM="dumb", errors=False).shown
        self.assertNotIn(b"\x1b", dumb)
        self.assertNotIn(b"\r", dumb.replace(b"\r\n", b""))
        plain = self.run_on_terminal("--training.steps", 2, NO_COLOR="1", errors=False).shown
        self.assertNotRegex(plain, rb"\x1b\[[\d;]*m")
        self.assertIn(b"\rstep 1/2 50%", plain)
        configured = self.run_on_terminal("--training.steps", 2, "--metrics.disable_color_printing", errors=False).shown
        self.assertNotRegex(configured, rb"\x1b\[[\d;]*m")
        colored = self.run_on_terminal("--training.steps", 2, errors=False).shown
        self.assertRegex(colored, rb"\x1b\[31mstep 1/2 50%")

    def test_a_pipe_gets_the_lines_of_always(self):
        run = self.train("--training.steps", "3", "--metrics.log_freq", "1", TERM="xterm-256color")
        lines = run.stdout.splitlines()
        self.assertEqual([re.match(r"step: +(\d+)  loss", line).group(1) for line in lines], ["1", "2", "3"])
        self.assertNotRegex(run.stdout + run.stderr, r"[\x1b\r]")


if __name__ == "__main__":
    main()
