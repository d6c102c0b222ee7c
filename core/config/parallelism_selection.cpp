#include "core/config/parallelism_selection.h"

namespace titan::core {
namespace {

constexpr const char* kComputeKey = "training.mixed_precision_param";

const char* text_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16:
      return "float16";
    case Dtype::bfloat16:
      return "bfloat16";
    case Dtype::float32:
      return "float32";
    case Dtype::float64:
      return "float64";
  }
  return "float32";
}

/// Whether layers compute in another type than parameters are stored in. A default that nobody
/// wrote does not ask for it where settle_compute_dtype will not take it.
bool casts(const JobConfig& config, const GivenValues& given) {
  const TrainingSection& training = config.training;
  if (training.dtype == Dtype::float64 || training.mixed_precision_param == training.dtype)
    return false;
  return given.find(kComputeKey) || !runs_on_cpu(config);
}

/// Sharding and casting are the work of one plugin; replicas alone that of another.
std::string data_parallel_plugin(const JobConfig& config, const Layout& layout,
                                 const GivenValues& given) {
  const bool shards = layout.shard * layout.context > 1;
  if (shards || casts(config, given) || config.training.enable_cpu_offload) return "fsdp";
  return layout.replicate > 1 ? "ddp" : "";
}

Value list_of_lists(const std::vector<std::vector<std::string>>& names) {
  Value::List lists;
  for (const std::vector<std::string>& inner : names)
    lists.push_back(Value::List(inner.begin(), inner.end()));
  return Value(std::move(lists));
}

}  // namespace

bool runs_on_cpu(const JobConfig& config) {
  return config.device_section.name == "cpu" && config.comm.mode != CommMode::fake_backend;
}

std::vector<ParallelismRequest> requested_parallelisms(const JobConfig& config,
                                                       const Layout& layout,
                                                       const GivenValues& given) {
  const ParallelismSection& section = config.parallelism;
  std::vector<ParallelismRequest> requests;
  const auto request = [&](const std::string& name, const std::string& axis,
                           std::initializer_list<const char*> causes) {
    const std::string key = "parallelism." + axis;
    SourceRange where = given.place(key);
    for (const char* cause : causes)
      if (!where) where = given.place(cause);
    requests.push_back({name, key, std::move(where)});
  };
  if (layout.pipeline > 1)
    request(section.pipeline_parallel, "pipeline_parallel",
            {"parallelism.pipeline_parallel_degree"});
  if (layout.tensor > 1)
    request(section.tensor_parallel, "tensor_parallel", {"parallelism.tensor_parallel_degree"});
  if (layout.context > 1)
    request(section.context_parallel, "context_parallel", {"parallelism.context_parallel_degree"});
  for (size_t i = 0; i < section.further.size(); ++i)
    requests.push_back({section.further[i], "parallelism.further",
                        given.item_place("parallelism.further", i)});
  if (const std::string name = data_parallel_plugin(config, layout, given); !name.empty())
    request(section.data_parallel == "auto" ? name : section.data_parallel, "data_parallel",
            {"parallelism.data_parallel_shard_degree", "parallelism.data_parallel_replicate_degree",
             "training.mixed_precision_param", "training.enable_cpu_offload"});
  return requests;
}

Value parallelism_options(const JobConfig& config) {
  const TrainingSection& training = config.training;
  const ParallelismSection& parallelism = config.parallelism;
  // A pipeline comes back to each layer soon: it keeps what was gathered.
  const bool never = parallelism.fsdp_reshard_after_forward == ReshardAfterForward::never ||
                     (parallelism.fsdp_reshard_after_forward == ReshardAfterForward::standard &&
                      config.layout.pipeline > 1);
  const bool always = parallelism.fsdp_reshard_after_forward == ReshardAfterForward::always;
  const bool as_stored = training.dtype == Dtype::float64;
  Value options = Value::map({
      {"reshard_after_forward", never    ? "never"
                                : always ? "always"
                                         : "default"},
      {"param_dtype", as_stored ? "as_stored" : text_of(training.mixed_precision_param)},
      {"reduce_dtype", as_stored ? "as_stored" : text_of(training.mixed_precision_reduce)},
      {"cpu_offload", training.enable_cpu_offload},
      {"loss_parallel", !parallelism.disable_loss_parallel},
      {"async", parallelism.enable_async_tensor_parallel},
      {"rotate_method", parallelism.context_parallel_rotate_method == RotateMethod::alltoall
                            ? "alltoall"
                            : "allgather"},
      {"load_balancer", parallelism.context_parallel_load_balancer.value_or("none")},
      {"microbatch_size", parallelism.pipeline_parallel_microbatch_size},
      {"first_stage_less_layers", parallelism.pipeline_parallel_first_stage_less_layers},
      {"last_stage_less_layers", parallelism.pipeline_parallel_last_stage_less_layers},
  });
  if (parallelism.module_fqns_per_model_part)
    options["modules_per_stage"] = list_of_lists(*parallelism.module_fqns_per_model_part);
  return options;
}

Value pipeline_schedule_options(const JobConfig& config) {
  const auto& csv = config.parallelism.pipeline_parallel_schedule_csv;
  return csv && !csv->empty() ? Value::map({{"file", *csv}}) : Value::map();
}

void settle_compute_dtype(JobConfig& config, const GivenValues& given, Diagnostics& diagnostics) {
  TrainingSection& training = config.training;
  if (given.find(kComputeKey) || training.dtype == Dtype::float64 || !runs_on_cpu(config) ||
      training.mixed_precision_param == training.dtype)
    return;
  training.mixed_precision_param = training.dtype;
  diagnostics.note(
      "computes in float32, the type of the parameters: on a CPU training."
      "mixed_precision_param = \"bfloat16\", the default, is taken only where it is written");
}

}  // namespace titan::core
