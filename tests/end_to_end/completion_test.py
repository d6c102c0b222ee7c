"""titan __complete against the declarations of the program, and completion in bash on a terminal."""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile

from harness import ROOT, TITAN, Case, environment, main, thorough, titan
from shell_session import ShellSession

BIN = pathlib.Path(TITAN).parent


class CompletionTest(Case):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="titan_")
        cls.addClassCleanup(folder.cleanup)
        cls.cache = {"XDG_CACHE_HOME": folder.name}

    def offered(self, *words, code=0, **env):
        """The shell's line and the candidates for the last word."""
        run = titan("__complete", "--", *words, **{**self.cache, **env})
        self.assertEqual((run.returncode, run.stderr), (code, ""), run.stdout)
        head, *rest = run.stdout.splitlines() or [""]
        return head, [line.split("\t")[0] for line in rest]

    def test_every_command_and_flag_of_the_help_is_offered(self):
        listed = re.findall(r"^  ([a-z-]+) {2,}\S", titan("--help").stdout, re.M)
        self.assertGreater(len(listed), 18)
        self.assertEqual(self.offered("")[1], [*listed, "help"])
        for command in ("list", "describe", "bench", "inspect", "launch", "generate"):
            flags = set(re.findall(r"^  (?:-\w \[ )?(--[a-z-]+)", titan("help", command).stdout, re.M))
            self.assertTrue(flags)
            self.assertEqual({word for word in self.offered(command, "--")[1] if not word.endswith(".")}, flags, command)

    def test_keys_and_values_come_from_the_schemas(self):
        help_all = titan("train", "--help", "all").stdout
        keys = set(re.findall(r"^  (--[a-z_0-9.\[\]]+)$", help_all, re.M))
        for section in ("training", "checkpoint", "optimizer"):
            own = {key.replace("[no_]", "") for key in keys if key.startswith(f"--{section}.")}
            self.assertEqual({key for key in self.offered("train", f"--{section}.")[1] if ".groups." not in key}, own, section)
        names = [line.split()[1] for line in titan("list", "optimizer", "--files").stdout.splitlines()[1:]]
        self.assertEqual(sorted(self.offered("train", "--optimizer.name", "")[1]), sorted(names))
        self.assertEqual(self.offered("train", "--optimizer.name=Mu")[1], ["--optimizer.name=Muon"])
        self.assertEqual(self.offered("train", "--metrics.loggers", "console,tensor")[1], ["console,tensorboard"])
        self.assertEqual(self.offered("train", "--training.mixed_precision_param", "bf")[1], ["bfloat16"])
        self.assertEqual(self.offered("train", "--job.config_file", "")[0], "files")
        self.assertEqual(self.offered("describe", "optimizer", "S")[1], ["SGD"])
        self.assertEqual(self.offered("launch", "--nproc", "2", "--", "train", "--optimizer.name", "L")[1], ["Lion"])
        self.assertIn("--optimizer.momentum", self.offered("train", "--optimizer.name", "SGD", "--optimizer.m")[1])
        self.assertNotIn("--optimizer.beta1", self.offered("train", "--optimizer.name", "SGD", "--optimizer.")[1])
        self.assertIn("16B", self.offered("train", "--job.config_file", ROOT / "train_configs/deepseek_v3_debug.toml", "--model.flavor", "")[1])
        for nothing in (["no-such-command", ""], ["train", "--training.no_such", ""], ["list", "optimizer", "--ranks", ""]):
            self.assertEqual(self.offered(*nothing), ("nothing", []))

    @thorough
    def test_a_new_plugin_is_offered_at_once_and_a_bad_cache_is_replaced(self):
        self.cache = {"XDG_CACHE_HOME": str(self.folder / "cache")}
        self.assertEqual(self.offered("to")[1], ["tokenize", "top"])
        cached, = (self.folder / "cache/titan").iterdir()
        good = cached.read_bytes()
        for bad in (b"", good[:200], good[:40] + b"{", b"\xff" * 100):
            cached.write_bytes(bad)
            self.assertEqual(self.offered("to")[1], ["tokenize", "top"])
            self.assertEqual(cached.read_bytes(), good)
        plugins = {"TITAN_PLUGIN_PATH": str(self.folder / "plugins")}
        self.assertEqual(self.offered("ac", **plugins)[1], [])
        shutil.copytree(os.environ["TITAN_STRANGER"], self.folder / "plugins")
        self.assertEqual(self.offered("ac", **plugins)[1], ["acme/greet"])
        self.assertEqual(self.offered("acme/greet", "--t", **plugins)[1], ["--tone"])
        self.assertEqual(self.offered("acme/greet", "--tone", "", **plugins)[1], ["warm", "cool"])
        self.assertEqual(self.offered("acme/greet", "", **plugins)[1], ["a", "b"])
        self.assertEqual(self.offered("acme/greet", "a", "", **plugins), ("files", []))
        shutil.rmtree(self.folder / "plugins")
        self.assertEqual(self.offered("ac", **plugins)[1], [])
        self.assertEqual(self.offered("to", XDG_CACHE_HOME="/proc/no")[1], ["tokenize", "top"])  # no folder for a cache

    def test_a_warm_call_takes_less_than_50_ms_of_the_cpu(self):
        self.offered("train", "--optimizer.")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        calls = 10
        for _ in range(calls):
            self.offered("train", "--optimizer.")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / calls
        print(f"{1000 * seconds:.0f} ms of the CPU per call")
        self.assertLess(seconds, 0.05)

    def test_bash_completes_on_a_terminal(self):
        script = self.write("titan.bash", titan("completion", "bash").stdout)
        if shutil.which("shellcheck"):
            self.assertEqual(subprocess.run(["shellcheck", script]).returncode, 0)
        recipe = self.write("my recipe.toml", "")
        env = environment(PATH=f"{BIN}:{os.environ['PATH']}", HOME=str(self.folder), PS1="$ ", **self.cache)
        with ShellSession(["bash", "--norc", "--noprofile", "-i"], env) as shell:
            shell.type(f"cd {self.folder}; . {script}; PS1='re''ady> '; clear\r")
            shell.wait_for("ready>")  # the prompt, and not the echo of the line above
            for typed, shown in (("titan toke\t", "titan tokenize"), ("titan train --optimizer.name=Mu\t", "--optimizer.name=Muon"),
                                 ("titan train --optimi\t", "--optimizer."), ("titan train --job.config_file my\t", f"{recipe.name.replace(' ', chr(92) + ' ')}"),
                                 ("titan train --optimizer.name=S\t --optimizer.mome\t", "--optimizer.momentum"),
                                 ("titan describe optimizer \t\t", "Adam   AdamW  Lion   Muon   SGD")):
                shell.type(typed)
                shell.wait_for(shown)
                shell.type("\x15\x0c")  # erase the line, clear the screen
            shell.type("titan train --no-such.thing \t\techo \"ok\"\r")  # no error in the prompt
            text = shell.wait_for("--no-such.thing echo")
            self.assertNotRegex(text, "error|not found")


if __name__ == "__main__":
    main()
