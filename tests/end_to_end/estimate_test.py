"""`titan estimate` and [memory_estimation]: errors before anything starts, figures that real runs confirm."""

import json
import sys

from harness import ROOT, Case, main, thorough, titan

sys.path.insert(0, str(ROOT / "tests/benchmarks"))
import memory_figures  # noqa: E402

DEBUG = ["--job.config_file", "train_configs/debug_model.toml"]


class EstimateTest(Case):
    def estimate(self, *arguments, code=0, **env):
        run = titan("estimate", *arguments, **env)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run

    @thorough
    def test_agrees_with_real_runs(self):
        """Within 2 %; each pipeline rank is compared with its own run."""
        for layout, checkpointing, dtype in memory_figures.QUICK:
            for i, (predicted, real, _) in enumerate(memory_figures.compare(layout, checkpointing, dtype)):
                with self.subTest(layout=layout, checkpointing=checkpointing, pipeline_rank=i):
                    self.assertGreater(predicted, 0.98 * real)
                    self.assertLess(predicted, 1.02 * real)

    def test_the_world_is_what_the_degrees_make(self):
        degrees = ["--parallelism.tensor_parallel_degree", 2, "--parallelism.pipeline_parallel_degree", 2]
        for arguments, env, ranks in [([], {}, 1), (degrees, {}, 4), (degrees, {"NGPU": "8"}, 8),
                                      ([*degrees, "--parallelism.data_parallel_shard_degree", 4], {"NGPU": "8"}, 16),
                                      ([*degrees, "--ranks", 32], {"NGPU": "8"}, 32)]:
            found = json.loads(self.estimate(*DEBUG, "--json", *arguments, **env).stdout)
            self.assertEqual(found["world_size"], ranks)
            for rank in found["ranks"]:
                self.assertEqual(sum(rank["peak_by_use"].values()), rank["peak_bytes"])

    def test_tokens_that_all_come_to_one_rank_are_counted(self):
        """If p ranks share experts, p - 1 of them send one rank equal excess over even load: that many times the same memory."""
        extra = {}
        for degree in (1, 2, 4, 8):
            # a GPU's output head needs more memory than layers of experts with even load, which would hide the
            # latter
            rank, = json.loads(self.estimate("--job.config_file", "train_configs/mixtral_debug.toml", "--ranks", 8, "--json",
                                             "--device.name", "cpu",
                                             "--parallelism.expert_parallel_degree", degree).stdout)["ranks"]
            if degree == 1:
                self.assertIsNone(rank["uneven_peak_bytes"])
            else:
                extra[degree] = rank["uneven_peak_bytes"] - rank["peak_bytes"]
        tokens, top_k, dim, hidden = 2 * 1024, 2, 256, 512
        self.assertGreater(extra[2], tokens * top_k * 4 * (2 * dim + 3 * hidden))  # rows in and out, gate, up and their product
        for degree in (4, 8):
            self.assertAlmostEqual(extra[degree] / extra[2], degree - 1, delta=0.01)
        self.assert_holds(self.estimate("--job.config_file", "train_configs/mixtral_debug.toml", "--ranks", 2,
                                        "--parallelism.expert_parallel_degree", 2).stdout, "if all tokens of every layer went to")

    def test_refuses_what_does_not_fit(self):
        run = self.estimate(*DEBUG, "--ranks", 6, "--parallelism.tensor_parallel_degree", 4, code=2)
        self.assert_holds(run.stderr, "tensor_parallel_degree", "the world size is 6")
        run = self.estimate(*DEBUG, "--ranks", 0, code=2)
        self.assert_holds(run.stderr, "--ranks must be >= 1")
        run = self.estimate(*DEBUG, "--peak-flops", "1e12", code=2)
        self.assert_holds(run.stderr, "give --bandwidth as well")
        run = self.estimate(*DEBUG, "--peak-flops", "-1", "--bandwidth", "1e9", code=2)
        self.assert_holds(run.stderr, "--peak-flops must be > 0")

    def test_predicts_a_time_and_says_so(self):
        run = self.estimate(*DEBUG, "--peak-flops", "1e12", "--bandwidth", "1e9")
        self.assert_holds(run.stdout, "PREDICTED step time, not measured", "PEAK", "causal_half")
        self.assertNotIn("PREDICTED", self.estimate(*DEBUG).stdout)

    def test_plays_405b_on_512_ranks(self):
        """Eight pipeline ranks, whose shards make the model together; 64 ranks share each."""
        found = json.loads(self.estimate(
            "--model.name", "llama3", "--model.flavor", "405B", "--training.dataset", "synthetic", "--metrics.loggers", "jsonl",
            "--training.seq_len", 8192, "--training.local_batch_size", 8, "--parallelism.tensor_parallel_degree", 8,
            "--parallelism.pipeline_parallel_degree", 8, "--activation_checkpoint.mode", "full", "--ranks", 512,
            "--json").stdout)
        self.assertEqual(len(found["ranks"]), 8)
        held = sum(rank["holds"]["parameters"] for rank in found["ranks"])
        self.assertAlmostEqual(64 * held / 4 / found["num_parameters"], 1, delta=1e-3)  # tensor parallelism does not shard norms

    def test_frozen_matrices_cost_a_third_less(self):
        lora = ["--model.converters", "lora", "--converter.lora.rank", 8, "--converter.lora.targets", "wq"]
        without, adapted = (json.loads(self.estimate(*DEBUG, *more, "--json").stdout) for more in ([], lora))
        blocks, dim, vocab = 6, 256, 2048
        ffn = 256 * -(-(2 * 4 * dim // 3) // 256)
        matrices = blocks * (2 * dim * dim + 2 * dim * dim + 3 * dim * ffn) + vocab * dim
        attached = blocks * 8 * (dim + dim)
        self.assertAlmostEqual(adapted["ranks"][0]["flops"] - without["ranks"][0]["flops"],
                               (6 * attached - 2 * matrices) * adapted["tokens_per_step"])

    def test_gradients_that_wait_for_their_reduction_are_gradients(self):
        """In the last stage of a pipeline, gradients of whole parameters are summed in fp32 over the microbatches: 4 bytes
        for each parameter, of which this rank keeps half."""
        found = json.loads(self.estimate("--json", *DEBUG, "--ranks", 4, "--parallelism.pipeline_parallel_degree", 2,
                                         "--parallelism.data_parallel_shard_degree", 2).stdout)
        last = found["ranks"][-1]
        whole = 2 * sum(stage["parameters"] for stage in last["stages"])
        self.assertAlmostEqual(last["peak_by_use"]["gradients"] / (4 * whole), 1, delta=0.1, msg=last["peak_by_use"])

    def test_a_training_job_can_ask_for_it(self):
        run = self.train("--memory_estimation.enable", "--parallelism.pipeline_parallel_degree", 2)
        self.assert_holds(run.stdout, "on 2 ranks", "PEAK")
        self.assert_nothing_was_written()
        asked = self.train("--memory_estimation.enable", "--world-size", 8,
                           config=["--job.config_file", ROOT / "train_configs/llama3_8b.toml"])
        estimated = titan("estimate", "--job.config_file", ROOT / "train_configs/llama3_8b.toml", "--ranks", 8)
        self.assertEqual(asked.stdout, estimated.stdout, "the estimate is for the same machine on any host")
        run = self.train("--memory_estimation.enable", "--memory_estimation.disable_fake_mode", code=2)
        self.assert_holds(run.stderr, "memory_estimation.disable_fake_mode")


if __name__ == "__main__":
    main()
