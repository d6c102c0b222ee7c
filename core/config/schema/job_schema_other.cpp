// [compile] to [debug].
#include "core/config/schema/job_config.h"

namespace titan::core::job_schema_parts {
namespace {

void declare_compile(SchemaBuilder& schema) {
  schema
      .option("enable", &CompileSection::enable, "Let a compile backend replace how layers compute")
      .option("components", &CompileSection::components, "Which parts")
      .one_of({"model", "loss"})
      .option("backend", &CompileSection::backend,
              "Compile backend; inductor is accepted as an alias of fused")
      .option("graphs", &CompileSection::graphs,
              "Replay forward and backward as one graph, if the device captures graphs and steps "
              "have equal shapes");
}

void declare_comm(SchemaBuilder& schema) {
  using Section = CommSection;
  schema
      .option("init_timeout_seconds", &Section::init_timeout_seconds,
              "Timeout of collectives until the first step is done, in seconds")
      .at_least(1)
      .option("train_timeout_seconds", &Section::train_timeout_seconds,
              "Timeout of collectives afterwards, in seconds")
      .at_least(1)
      .option("trace_buf_size", &Section::trace_buf_size, "Flight recorder entries; 0: off")
      .at_least(0)
      .option("save_traces_folder", &Section::save_traces_folder,
              "Flight recorder folder under job.dump_folder")
      .option("save_traces_file_prefix", &Section::save_traces_file_prefix,
              "Prefix of flight recorder files; the rank follows")
      .option("mode", &Section::mode,
              "default: a real run; fake_backend: simulate one rank of many",
              {{"default", CommMode::standard},
               {"fake_backend", CommMode::fake_backend},
               {"local_tensor", CommMode::local_tensor}});
}

void declare_fault_tolerance(SchemaBuilder& schema) {
  using Section = FaultToleranceSection;
  schema
      .option("enable", &Section::enable,
              "Train in several replica groups, each a job of its own, that fail and join")
      .option("process_group", &Section::process_group, "Backend between groups")
      .one_of({"gloo", "nccl"})
      .option("process_group_timeout_ms", &Section::process_group_timeout_ms,
              "Limit for one collective between groups, in milliseconds")
      .at_least(1)
      .option("replica_id", &Section::replica_id, "Number of this group, from 0")
      .at_least(0)
      .option("group_size", &Section::group_size,
              "Most groups that train together; further ones wait as spares")
      .at_least(0)
      .option("min_replica_size", &Section::min_replica_size,
              "Fewest groups that train; fewer wait for others")
      .at_least(1)
      .option("semi_sync_method", &Section::semi_sync_method,
              "Synchronise weights every sync_steps steps, instead of gradients in each step")
      .one_of({"local_sgd", "diloco"})
      .option("sync_steps", &Section::sync_steps,
              "Steps between two synchronisations of the same weights")
      .at_least(1)
      .option("should_quantize", &Section::should_quantize,
              "Send weights between groups as 8-bit numbers, with a scale for each row")
      .option("fragment_sync_delay", &Section::fragment_sync_delay,
              "diloco: steps that groups train on while a fragment is averaged")
      .at_least(0)
      .option("fragment_update_alpha", &Section::fragment_update_alpha,
              "diloco: share of a group's own weights after a synchronisation; 0: the common ones")
      .between(0, 1)
      .option("num_fragments", &Section::num_fragments,
              "diloco: parts of the model that are synchronised in turn")
      .at_least(1)
      .option("module_fqns_per_model_fragment", &Section::module_fqns_per_model_fragment,
              "diloco: explicit split into fragments: one list of module names each");
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
              "Task files, plain data files or folders, as for titan evaluate --tasks, to score "
              "the model on")
      .option("tasks_freq", &Section::tasks_freq, "Steps between these scores; unset: freq")
      .at_least(1);
}

void declare_debug(SchemaBuilder& schema) {
  using Section = DebugSection;
  schema.option("seed", &Section::seed, "Base seed; unset: random")
      .at_least(0)
      .option("deterministic", &Section::deterministic, "Use deterministic algorithms only")
      .option("deterministic_warn_only", &Section::deterministic_warn_only,
              "Warn instead of failing where there is no deterministic algorithm")
      .option("moe_force_load_balance", &Section::moe_force_load_balance,
              "Route tokens to experts round-robin, for benchmarks")
      .option("fingerprints", &Section::fingerprints,
              "Write hashes of the initial weights and of each step's tokens, to compare layouts")
      .option("find_nan", &Section::find_nan,
              "Repeat a step whose loss or gradients are NaN or infinite, and name the first layer "
              "and tensor with a bad value")
      .option("detect_anomaly", &Section::detect_anomaly,
              "Check the gradients of every operation and name the layer of the first NaN; slow")
      .option("trace_tensors", &Section::trace_tensors,
              "Modules and weights, by pattern, whose inputs, outputs and gradients are written to "
              "job.dump_folder/tensor_trace for titan compare; slow")
      .option("trace_tensors_from", &Section::trace_tensors_from, "First traced step")
      .at_least(1)
      .option("trace_tensors_until", &Section::trace_tensors_until,
              "Last traced step; unset: the last step of the run")
      .at_least(1)
      .option("trace_tensors_every", &Section::trace_tensors_every,
              "Trace every N-th step from trace_tensors_from on")
      .at_least(1);
}

}  // namespace

void declare_other_sections(SchemaBuilder& schema) {
  schema.table("compile", &JobConfig::compile, "Fused kernels", declare_compile)
      .table("comm", &JobConfig::comm, "Communication", declare_comm)
      .table("memory_estimation", &JobConfig::memory_estimation, "Memory estimate without training",
             [](SchemaBuilder& table) {
               using Section = MemoryEstimationSection;
               table.option("enable", &Section::enable, "Estimate the memory of this job and exit")
                   .option("disable_fake_mode", &Section::disable_fake_mode,
                           "Estimate with real allocations");
             })
      .table("fault_tolerance", &JobConfig::fault_tolerance, "Replicas that fail and join",
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
      .table("debug", &JobConfig::debug, "Seeds, determinism and debugging", declare_debug);
}

}  // namespace titan::core::job_schema_parts
