// [compile] to [debug].
#include "core/config/schema/job_config.h"

namespace titan::core::job_schema_parts {
namespace {

void declare_compile(SchemaBuilder& schema) {
  schema.option("enable", &CompileSection::enable, "Let a compile_backend swap how layers compute")
      .option("components", &CompileSection::components, "Which parts")
      .one_of({"model", "loss"})
      .option("backend", &CompileSection::backend,
              "A compile_backend; inductor, which compiles for PyTorch, stands for fused")
      .option("graphs", &CompileSection::graphs,
              "Replay forward and backward as one graph where the device records them and steps "
              "are alike");
}

void declare_comm(SchemaBuilder& schema) {
  using Section = CommSection;
  schema
      .option("init_timeout_seconds", &Section::init_timeout_seconds,
              "Timeout of collectives until the first step is done")
      .at_least(1)
      .option("train_timeout_seconds", &Section::train_timeout_seconds, "Timeout afterwards")
      .at_least(1)
      .option("trace_buf_size", &Section::trace_buf_size, "Flight recorder entries; 0: off")
      .at_least(0)
      .option("save_traces_folder", &Section::save_traces_folder,
              "Flight recorder folder under job.dump_folder")
      .option("save_traces_file_prefix", &Section::save_traces_file_prefix,
              "Flight recorder file: this and the rank")
      .option("mode", &Section::mode, "default, or a run without communication",
              {{"default", CommMode::standard},
               {"fake_backend", CommMode::fake_backend},
               {"local_tensor", CommMode::local_tensor}});
}

void declare_fault_tolerance(SchemaBuilder& schema) {
  using Section = FaultToleranceSection;
  schema.option("enable", &Section::enable, "Train on while replicas come and go")
      .option("process_group", &Section::process_group, "Backend between replicas")
      .one_of({"gloo", "nccl"})
      .option("process_group_timeout_ms", &Section::process_group_timeout_ms, "Its timeout")
      .at_least(1)
      .option("replica_id", &Section::replica_id, "Number of this replica")
      .at_least(0)
      .option("group_size", &Section::group_size, "Number of replicas")
      .at_least(0)
      .option("min_replica_size", &Section::min_replica_size, "Replicas needed to go on")
      .at_least(1)
      .option("semi_sync_method", &Section::semi_sync_method, "Synchronise rarely")
      .one_of({"local_sgd", "diloco"});
}

void declare_validation(SchemaBuilder& schema) {
  using Section = ValidationSection;
  schema.option("enable", &Section::enable, "Validate at step 1 and every freq steps")
      .option("dataset", &Section::dataset, "Dataset, by name")
      .option("dataset_path", &Section::dataset_path, "Local path instead of the dataset's own")
      .option("local_batch_size", &Section::local_batch_size, "Sequences per data-parallel rank")
      .at_least(1)
      .option("seq_len", &Section::seq_len, "Tokens per sequence")
      .at_least(1)
      .option("freq", &Section::freq, "Steps between validations")
      .at_least(1)
      .option("steps", &Section::steps, "Batches per validation; -1: the whole set")
      .table("dataloader", &Section::dataloader, "Background loading of validation data",
             declare_dataloader)
      .option("tasks", &Section::tasks,
              "Task files, plain data or folders, as titan evaluate --tasks, to score the model on")
      .option("tasks_freq", &Section::tasks_freq, "Steps between these scores; unset: freq")
      .at_least(1);
}

void declare_debug(SchemaBuilder& schema) {
  using Section = DebugSection;
  schema.option("seed", &Section::seed, "Base seed; unset: drawn at the start")
      .at_least(0)
      .option("deterministic", &Section::deterministic, "Deterministic algorithms only")
      .option("deterministic_warn_only", &Section::deterministic_warn_only,
              "Warn instead of failing where there is no deterministic algorithm")
      .option("moe_force_load_balance", &Section::moe_force_load_balance,
              "Route tokens to experts in turn, for benchmarks")
      .option("fingerprints", &Section::fingerprints,
              "Write hashes of the initial weights and of each step's tokens, to compare layouts")
      .option("find_nan", &Section::find_nan,
              "Run a step whose loss or gradients are no numbers once more, and name the first "
              "layer and tensor that went bad")
      .option("detect_anomaly", &Section::detect_anomaly,
              "Look at the gradients of every operation, and name the layer of the first that "
              "gives a NaN; slow")
      .option("trace_tensors", &Section::trace_tensors,
              "Modules and weights by pattern: what goes in and comes out, and gradients, is "
              "written into job.dump_folder/tensor_trace for titan compare; slow")
      .option("trace_tensors_from", &Section::trace_tensors_from, "First step that is traced")
      .at_least(1)
      .option("trace_tensors_until", &Section::trace_tensors_until,
              "Last step that may be traced; unset: the run's last")
      .at_least(1)
      .option("trace_tensors_every", &Section::trace_tensors_every,
              "Of the steps from trace_tensors_from on every N-th is traced")
      .at_least(1);
}

}  // namespace

void declare_other_sections(SchemaBuilder& schema) {
  schema.table("compile", &JobConfig::compile, "Fused kernels", declare_compile)
      .table("comm", &JobConfig::comm, "Communication", declare_comm)
      .table("memory_estimation", &JobConfig::memory_estimation, "Memory without running",
             [](SchemaBuilder& table) {
               using Section = MemoryEstimationSection;
               table.option("enable", &Section::enable, "Estimate the memory of this job and end")
                   .option("disable_fake_mode", &Section::disable_fake_mode,
                           "Estimate on real memory");
             })
      .table("fault_tolerance", &JobConfig::fault_tolerance, "Replicas that come and go",
             declare_fault_tolerance)
      .table("experimental", &JobConfig::experimental, "Accepted without effect",
             [](SchemaBuilder& table) {
               using Section = ExperimentalSection;
               table
                   .option("custom_import", &Section::custom_import,
                           "No effect: name plugins in [plugins]")
                   .option("custom_args_module", &Section::custom_args_module,
                           "No effect: name plugins in [plugins]");
             })
      .table("validation", &JobConfig::validation, "Validation", declare_validation)
      .table("debug", &JobConfig::debug, "Seeds, determinism and the search for mistakes",
             declare_debug);
}

}  // namespace titan::core::job_schema_parts
