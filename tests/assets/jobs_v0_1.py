"""The jobs that tests/assets/v0.1 was written by. make_v0_1.py ran them once; end_to_end/assets_test.py resumes them."""

SIZES = ["--model.dim", "8", "--model.n_layers", "2", "--model.n_heads", "2", "--model.n_kv_heads", "2"]
RECIPE = ["--training.seq_len", "16", "--training.local_batch_size", "1", "--training.global_batch_size", "4",
          "--training.steps", "4", "--lr_scheduler.warmup_steps", "0", "--lr_scheduler.decay_ratio", "0.0"]
SAVES = ["--checkpoint.enable", "--checkpoint.interval", "2", "--checkpoint.no_last_save_model_only"]
# The step that is stored; the recorded losses are those of the later steps.
SAVED, STEPS = 2, 4

LLAMA = ["--job.config_file", "train_configs/debug_model.toml", *SIZES, "--model.multiple_of", "8", *RECIPE, *SAVES]
MIXTRAL = ["--job.config_file", "train_configs/mixtral_debug.toml", *SIZES, "--model.hidden_dim", "8", "--model.num_experts", "4",
           "--model.load_balance_coeff", "0.001", "--model.enable_weight_tying", *RECIPE, *SAVES]
# name: arguments, ranks, and what more these ranks are given
CHECKPOINTS = {
    "dense": ([*LLAMA, "--model.enable_weight_tying"], 2, []),  # FSDP over two ranks
    "experts": (MIXTRAL, 1, []),
    "pipeline": ([*LLAMA, "--training.local_batch_size", "2"], 2,
                 ["--parallelism.pipeline_parallel_degree", "2", "--parallelism.pipeline_parallel_schedule", "1F1B"]),
}
# What makes a run write every kind of file.
EVERY_FILE = ["--profiling.enable_profiling", "--profiling.profile_freq", "4", "--profiling.enable_memory_snapshot", "--debug.fingerprints",
              "--metrics.save_for_all_ranks"]
