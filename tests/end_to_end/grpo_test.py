"""experiments/grpo, built against an installation: a training loop that samples its own data. The log-likelihoods recorded while
sampling are those that the trainer computes, under one rank and under FSDP."""

import os
import pathlib
import subprocess
import sys

from harness import HANG, ROOT, Case, main, metrics
from installed import PREFIX, build_project, titan_installed, train_installed

SOURCE = ROOT / "experiments/grpo"
NAME = "maintainers/grpo"
MOVED, RIGHT = "loss_metrics/moved", "grpo/right"
PLUGINS = None


def setUpModule():
    global PLUGINS
    PLUGINS = build_project(SOURCE, pathlib.Path(os.environ["TITAN_WORK"]) / "grpo") / "lib/titan/plugins"


class GrpoTest(Case):
    def setUp(self):
        super().setUp()
        self.assets = self.folder / "assets"
        subprocess.run([sys.executable, SOURCE / "make_assets.py", self.assets], check=True, timeout=HANG)
        self.job = ["--job.config_file", SOURCE / "sums.toml", "--model.hf_assets_path", self.assets, "--training.dataset_path",
                    self.assets / "train.jsonl", "--metrics.loggers", "jsonl", "--metrics.log_freq", 1, "--checkpoint.keep_latest_k", 0]

    def learn(self, name, *arguments, ranks=1):
        """Three steps with rewards from the supervised start; metrics by step."""
        out = self.folder / name
        words = [NAME, "--prompts", 8, "--samples", 16, "--rows", 32, *self.job, "--job.dump_folder", out, "--loss.name", NAME,
                 "--training.seq_len", 8, "--training.local_batch_size", 32, "--training.global_batch_size", 128, "--training.steps", 3,
                 "--checkpoint.initial_load_path", self.folder / "start/checkpoint/step-20", "--lr_scheduler.warmup_steps", 0, *arguments]
        launch = ["launch", "--nproc", ranks, "--log-dir", self.folder / "logs", "--"] if ranks > 1 else []
        run = titan_installed(*launch, *words, TITAN_PLUGIN_PATH=str(PLUGINS))
        self.assertEqual(run.returncode, 0, run.stderr)
        return {line["step"]: line for line in metrics(out) if MOVED in line}

    def test_what_is_recorded_while_sampling_is_what_the_trainer_computes(self):
        run = train_installed(1, *self.job, "--job.dump_folder", self.folder / "start", "--training.steps", 20, "--checkpoint.interval", 20)
        self.assertEqual(run.returncode, 0, run.stderr)
        alone = self.learn("alone")
        self.assertEqual([alone[step][MOVED] for step in (1, 2, 3)], [0, 0, 0])  # number of tokens whose log-likelihood differs in any bit
        self.assertTrue(all(0 < line[RIGHT] < 1 and line["grad_norm"] > 0 for line in alone.values()), alone)
        sharded = self.learn("sharded", "--parallelism.data_parallel_shard_degree", 2, ranks=2)
        self.assertEqual(sharded[1][RIGHT], alone[1][RIGHT])
        self.assertEqual(sharded[1][MOVED], 0)
        self.assertAlmostEqual(sharded[1]["grad_norm"], alone[1]["grad_norm"], delta=1e-4 * alone[1]["grad_norm"])

        again = self.learn("again")
        for step, line in alone.items():
            self.assertEqual([again[step][name] for name in (RIGHT, "grad_norm", MOVED)], [line[name] for name in (RIGHT, "grad_norm", MOVED)])

    def test_a_wrong_job_is_refused_before_anything_starts(self):
        run = titan_installed(NAME, "--prompts", 0, "--samples", 1, *self.job, TITAN_PLUGIN_PATH=str(PLUGINS))
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "--prompts must be >= 1", "--samples must be >= 2")
        self.assertTrue((PREFIX / "include/titan/engine.h").exists())


if __name__ == "__main__":
    main()
