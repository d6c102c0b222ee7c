#include "core/config/selection/parallelism_selection.h"

#include "core/config/selection/default_plugins.h"

namespace titan::core {
namespace {

constexpr const char* kComputeKey = "training.mixed_precision_param";

/// Whether layers compute in another dtype than parameters are stored in. Ignores a default that
/// settle_compute_dtype will replace.
bool casts(const JobConfig& config, const GivenValues& given) {
  const TrainingSection& training = config.training;
  if (training.dtype == Dtype::float64 || training.mixed_precision_param == training.dtype)
    return false;
  return given.find(kComputeKey) || !runs_on_cpu(config);
}

/// One plugin shards, casts and offloads; another handles replicas alone.
std::string data_parallel_plugin(const JobConfig& config, const Layout& layout,
                                 const GivenValues& given) {
  const bool shards = layout.shard * layout.context > 1;
  if (shards || casts(config, given) || config.training.enable_cpu_offload)
    return default_plugins::kSharding;
  return layout.replicate > 1 ? default_plugins::kReplicas : "";
}

}  // namespace

bool runs_on_cpu(const JobConfig& config) {
  return config.device_section.name == default_plugins::kHost &&
         config.comm.mode != CommMode::fake_backend;
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
  if (section.expert_parallel_degree > 1 || section.expert_tensor_parallel_degree > 1)
    request(section.expert_parallel, "expert_parallel",
            {"parallelism.expert_parallel_degree", "parallelism.expert_tensor_parallel_degree"});
  for (size_t i = 0; i < section.further.size(); ++i)
    requests.push_back(
        {section.further[i], "parallelism.further", given.item_place("parallelism.further", i)});
  if (const std::string name = data_parallel_plugin(config, layout, given); !name.empty())
    request(section.data_parallel == "auto" ? name : section.data_parallel, "data_parallel",
            {"parallelism.data_parallel_shard_degree", "parallelism.data_parallel_replicate_degree",
             "training.mixed_precision_param", "training.enable_cpu_offload"});
  if (config.fault_tolerance.enable)  // last: it sums what data parallelism has summed
    requests.push_back({config.fault_tolerance.semi_sync_method ? default_plugins::kSemiSync
                                                                : default_plugins::kReplicaGroups,
                        "fault_tolerance.enable", given.place("fault_tolerance.enable")});
  return requests;
}

void settle_compute_dtype(JobConfig& config, const GivenValues& given, Diagnostics& diagnostics) {
  TrainingSection& training = config.training;
  if (given.find(kComputeKey) || training.dtype == Dtype::float64 || !runs_on_cpu(config) ||
      training.mixed_precision_param == training.dtype)
    return;
  training.mixed_precision_param = training.dtype;
  diagnostics.note(
      "computes in float32, the dtype of the parameters: on a CPU the default "
      "training.mixed_precision_param = \"bfloat16\" is used only if it is set explicitly");
}

}  // namespace titan::core
