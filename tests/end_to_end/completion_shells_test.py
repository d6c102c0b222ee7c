"""Completion in zsh on a terminal and in fish. Skipped where one of the shells is missing."""

import os
import pathlib
import shutil
import subprocess
import unittest

from harness import TITAN, Case, environment, main, titan
from shell_session import ShellSession

BIN = pathlib.Path(TITAN).parent
MISSING = [shell for shell in ("zsh", "fish") if not shutil.which(shell)]


@unittest.skipIf(MISSING, f"not installed: {' '.join(MISSING)}; apt-get install {' '.join(MISSING)}")
class ShellsTest(Case):
    def setUp(self):
        super().setUp()
        self.env = environment(PATH=f"{BIN}:{os.environ['PATH']}", HOME=str(self.folder), XDG_CACHE_HOME=str(self.folder / "cache"),
                               XDG_CONFIG_HOME=str(self.folder / "config"), XDG_DATA_HOME=str(self.folder / "data"))

    def test_zsh_completes_on_a_terminal(self):
        self.write("functions/_titan", titan("completion", "zsh").stdout)
        self.write("my recipe.toml", "")
        self.write(".zshrc", f"fpath=({self.folder}/functions $fpath)\nautoload -Uz compinit\ncompinit -u\nPROMPT='> '\ncd {self.folder}\n")
        with ShellSession(["zsh", "-i"], {**self.env, "ZDOTDIR": str(self.folder)}) as shell:
            shell.wait_for(">")
            for typed, shown in (("titan toke\t", "titan tokenize"), ("titan train --optimizer.name=Mu\t", "--optimizer.name=Muon"),
                                 ("titan train --optimi\tname Li\t", "--optimizer.name Lion"),
                                 ("titan train --job.config_file my\t", "my\\ recipe.toml"),
                                 ("titan describe optimizer S\t", "titan describe optimizer SGD"),
                                 ("titan train --optimizer.name=SGD --optimizer.mome\t", "--optimizer.momentum"),
                                 ("titan describe optimizer \t", "Orthogonalized momentum")):
                shell.type(typed)
                shell.wait_for(shown)
                shell.type("\x03\x0c")
                shell.wait_for(">")
            shell.type("titan train --no-such.thing \techo\r")
            text = shell.wait_for("--no-such.thing echo")
            self.assertNotRegex(text.partition("--no-such")[0], "error|not found")

    def fish(self, line):
        """The candidates of fish for a command line, with their texts."""
        run = subprocess.run(["fish", "-c", "complete -C $argv[1]", "--", line], env=self.env, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return [tuple(found.split("\t")) for found in run.stdout.splitlines()]

    def test_fish_completes(self):
        self.write("config/fish/completions/titan.fish", titan("completion", "fish").stdout)
        self.write("my recipe.toml", "")
        self.assertEqual(self.fish("titan toke"), [("tokenize", "convert text to tokens on disk, once for many runs")])
        self.assertEqual([word for word, *_ in self.fish("titan train --optimizer.name ")], ["Adam", "AdamW", "Lion", "Muon", "SGD"])
        self.assertEqual([word for word, *_ in self.fish("titan train --optimizer.name=Mu")], ["--optimizer.name=Muon"])
        self.assertEqual([word for word, *_ in self.fish("titan train --optimizer.name SGD --optimizer.mome")], ["--optimizer.momentum"])
        self.assertEqual([word for word, *_ in self.fish("titan train --job.config_file my")], ["my recipe.toml"])
        self.assertEqual(self.fish("titan train --no-such.thing "), [])


if __name__ == "__main__":
    main()
