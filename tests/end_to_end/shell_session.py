"""An interactive shell on a terminal, whose screen pyte draws. Used by the tests of completion."""

import os
import pty
import select
import signal
import time

import pyte

from harness import HANG

COLUMNS, LINES = 160, 50


class ShellSession:
    """Types into a shell and reads its screen. Use as a context manager."""

    def __init__(self, command, env):
        self.screen = pyte.Screen(COLUMNS, LINES)
        self.stream = pyte.ByteStream(self.screen)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.clear()
            os.environ.update(env, TERM="xterm", COLUMNS=str(COLUMNS), LINES=str(LINES))
            os.execvp(command[0], command)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def wait_for(self, expected):
        """Reads until the screen holds `expected`; fails after HANG seconds."""
        end = time.monotonic() + HANG
        while expected not in self.text():
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"the screen never showed {expected!r}:\n{self.text()}")
            try:
                self.stream.feed(os.read(self.terminal, 1 << 16))
            except OSError:
                raise AssertionError(f"the shell ended before it showed {expected!r}:\n{self.text()}") from None
        return self.text()
