"""Experts that are distributed or sharded over ranks, in the model mixtral: every layout, recomputation and kind of
checkpoints compared with one rank in float64, and refused configurations."""

from harness import main, thorough, titan
from mixtral_case import SHARD, SIZES, MixtralCase, degrees

TWO_ROWS = ["--training.local_batch_size", "2"]
# degrees of a run: those of parallelism, the experts' last
TENSOR = {"tensor_parallel": 2}
DEALT_OVER_TENSOR = TENSOR | {"expert_parallel": 2}
CUT = TENSOR | {"expert_tensor_parallel": 2}
DEALT_AND_CUT = CUT | {"expert_parallel": 2}


def layout(axes):
    return degrees(**{"data_parallel_shard": -1} | axes)


class ExpertParallelTest(MixtralCase):
    def assert_equal(self, ranks, axes, *arguments):
        with self.subTest(ranks=ranks, **axes):
            cuts_batch = {"context_parallel", "tensor_parallel", "pipeline_parallel"} & axes.keys()
            self.assert_equals_one_rank(ranks, *layout(axes), *(TWO_ROWS if cuts_batch else []), *arguments, same_load=not cuts_batch)

    def test_experts_are_dealt_to_ranks(self):
        for ranks, degree, axes in ((2, 2, {}), (4, 4, {"context_parallel": 2}), (4, 2, {"pipeline_parallel": 2})):
            self.assert_equal(ranks, axes | {"expert_parallel": degree})

    @thorough
    def test_experts_are_dealt_to_ranks_of_more_layouts(self):
        for ranks, degree, axes in ((4, 2, {}), (4, 4, {}), (4, 2, {"data_parallel_replicate": 2, "data_parallel_shard": 2}),
                                    (2, 2, {"context_parallel": 2})):
            self.assert_equal(ranks, axes | {"expert_parallel": degree})

    @thorough
    def test_experts_are_dealt_to_ranks_of_tensor_parallelism(self):
        self.assert_equal(2, DEALT_OVER_TENSOR)
        self.assert_equal(4, DEALT_OVER_TENSOR)
        self.assert_equal(4, TENSOR | {"expert_parallel": 4})
        self.assert_equal(4, TENSOR | {"context_parallel": 2, "expert_parallel": 4})
        self.assert_equal(4, DEALT_OVER_TENSOR | {"pipeline_parallel": 2})

    def test_each_expert_is_cut(self):
        self.assert_equal(2, CUT)

    @thorough
    def test_each_expert_is_cut_under_products(self):
        self.assert_equal(4, CUT)
        self.assert_equal(4, CUT | {"data_parallel_replicate": 2, "data_parallel_shard": 1})
        self.assert_equal(4, DEALT_AND_CUT)
        self.assert_equal(4, DEALT_AND_CUT | {"context_parallel": 2})

    @thorough
    def test_ranks_that_all_have_the_same_tokens(self):
        for ranks, axes in ((2, DEALT_OVER_TENSOR), (4, TENSOR | {"expert_parallel": 4}), (2, CUT), (4, DEALT_AND_CUT)):
            self.assert_equal(ranks, axes, "--parallelism.tensor.no_sequence_parallel")

    @thorough
    def test_where_blocks_are_run_again(self):
        modes = (["full"], ["full", "--activation_checkpoint.early_stop"],
                 ["selective", "--activation_checkpoint.selective_ac_option", "op"],
                 ["memory_budget", "--activation_checkpoint.memory_budget", "0.3"])
        for mode in modes:
            self.assert_equal(2, {"expert_parallel": 2}, "--activation_checkpoint.mode", *mode)
            self.assert_equal(2, CUT, "--activation_checkpoint.mode", *mode)
        for mode in modes[:3:2]:
            self.assert_equal(2, DEALT_OVER_TENSOR, "--activation_checkpoint.mode", *mode)
            self.assert_equal(4, DEALT_AND_CUT, "--activation_checkpoint.mode", *mode)

    def test_ranks_that_are_left_without_an_expert(self):
        for degree, model in ((1, ("--model.num_experts", 3)), (2, ("--model.num_experts", 2, "--model.top_k", 1, "--debug.seed", 2))):
            with self.subTest(degree=degree):
                self.assert_equals_one_rank(4, *SHARD, *degrees(expert_parallel=degree), model=model)

    @thorough
    def test_a_run_goes_on_under_another_layout(self):
        cut = layout(DEALT_AND_CUT) + TWO_ROWS
        self.assert_goes_on((4, cut), ((1, []), (2, layout(DEALT_OVER_TENSOR)), (2, layout({"expert_parallel": 2}))))

    @thorough
    def test_a_run_of_dealt_experts_goes_on_cut(self):
        self.assert_goes_on((4, layout({"expert_parallel": 2})), ((2, layout(CUT)), (4, layout({"expert_parallel": 4}))))

    def test_what_cannot_be_is_refused_before_anything_starts(self):
        llama = ["--model.name", "llama3", "--model.flavor", "debugmodel"]
        for world, arguments, words in (
                (2, degrees(expert_parallel=2) + ["--model.num_experts", "5"],
                 ["the 5 experts of 'layers.0.moe' cannot be distributed evenly over 2 ranks", "a divisor of 5"]),
                (2, degrees(**CUT) + ["--model.hidden_dim", "33"],
                 ["the hidden width 33 of the experts of 'layers.0.moe' cannot be cut into 2 equal parts"]),
                (2, degrees(expert_tensor_parallel=2), ["must be 1 or tensor_parallel_degree = 1, got 2"]),
                (4, degrees(tensor_parallel=4, expert_tensor_parallel=2), ["must be 1 or tensor_parallel_degree = 4, got 2"]),
                (2, degrees(**DEALT_AND_CUT), ["experts do not fit: ", "context_parallel_degree x tensor_parallel_degree = 2 ", "2 x 2"]),
                (2, degrees(expert_parallel=3), ["experts do not fit"]),
                (6, layout(TENSOR | {"expert_parallel": 3}), ["'ep' cannot have 3 of the 6 ranks", "possible: 1, 2, 6"]),
                (2, degrees(expert_parallel=2) + ["--parallelism.expert_parallel_comm_backend", "deepep"], ["DeepEP is not built yet"]),
                (2, llama + degrees(expert_parallel=2), ["found no experts to distribute"]),
                (2, llama + degrees(**CUT), ["found no experts to distribute", "expert_tensor_parallel_degree"])):
            with self.subTest(words=words):
                recipe = ["--job.config_file", "train_configs/mixtral_debug.toml", *SIZES]
                if "llama3" in arguments:
                    recipe = ["--job.config_file", "train_configs/debug_model.toml"]
                run = titan("train", *recipe, "--training.seq_len", "64", "--job.dump_folder", self.out, *arguments, "--dry-run",
                            "--world-size", world)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assert_holds(run.stderr, *words)
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    main()
