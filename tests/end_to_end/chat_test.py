"""experiments/chat, built against an installation: a custom data set for training and resuming."""

import os
import pathlib
import subprocess
import sys

from harness import ROOT, Case, losses, main
from installed import build_project, run_checked, titan_installed

PLUGINS = None


def setUpModule():
    global PLUGINS
    build = pathlib.Path(os.environ["TITAN_WORK"]) / "chat"
    PLUGINS = build_project(ROOT / "experiments/chat", build) / "lib/titan/plugins"
    run_checked("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")


class ChatTest(Case):
    def setUp(self):
        super().setUp()
        self.chats = self.folder / "chats.jsonl"
        subprocess.run([sys.executable, ROOT / "experiments/chat/make_conversations.py", ROOT / "tests/assets/corpus/train.jsonl",
                        self.chats], check=True)

    def train_chat(self, *arguments, out=None, code=0):
        run = titan_installed("train", "--job.config_file", "experiments/chat/train.toml", "--plugins.paths", PLUGINS,
                              "--training.dataset_path", self.chats, "--job.dump_folder", out or self.out, *arguments)
        self.assertEqual(run.returncode, code, run.stderr)
        return run

    def test_it_trains_shuffles_and_resumes_without_a_line_about_any_of_it(self):
        flags = ["--data.shuffle", "--training.dataloader.num_workers", "2", "--training.local_batch_size", "2"]
        self.train_chat(*flags, "--training.steps", "6", out=self.folder / "straight")
        saving = [*flags, "--checkpoint.enable", "--checkpoint.interval", "3", "--checkpoint.no_last_save_model_only",
                  "--lr_scheduler.total_steps", "6"]
        self.train_chat(*saving, "--training.steps", "3")
        self.train_chat(*saving, "--training.steps", "6")
        self.assertEqual(losses(self.out), losses(self.folder / "straight"))

    def test_a_wrong_line_is_named(self):
        with open(self.chats, "a") as file:
            file.write('{"messages": [{"role": "user"}]}\n')
        lines = self.chats.read_text().splitlines()
        self.chats.write_text("\n".join([lines[-1], *lines]) + "\n")
        run = self.train_chat(code=1)
        self.assert_holds(run.stderr, "chats.jsonl:1", "content")


if __name__ == "__main__":
    main()
