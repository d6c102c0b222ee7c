#include "core/config/selection/not_built.h"

#include <string>

namespace titan::core {
namespace {

struct Feature {
  const char* key;                     ///< the key that requests it
  bool (*is_asked)(const JobConfig&);  ///< whether the key's value requests it
  const char* what;                    ///< "checkpoints are"
};

const Feature kFeatures[] = {
    // More than one rank
    {"parallelism.context_parallel_load_balancer",
     [](const JobConfig& c) {
       return c.parallelism.context_parallel_degree > 1 &&
              c.parallelism.context_parallel_load_balancer == "ptrr";
     },
     "load balancing by the blocks of an attention mask is"},
    {"parallelism.expert_tensor_parallel_degree",  // Titan's own plugin supports it
     [](const JobConfig& c) { return c.parallelism.expert_tensor_parallel_degree > 1; },
     "sharding each expert with this plugin of expert parallelism is"},
    {"comm.mode", [](const JobConfig& c) { return c.comm.mode == CommMode::local_tensor; },
     "simulating ranks as tensors of one process is"},

    // The step
    {"debug.moe_force_load_balance",
     [](const JobConfig& c) { return c.debug.moe_force_load_balance; },
     "forced expert load balance in a model without experts is"},
};

struct LaterComponent {
  std::string_view kind, name;
};
constexpr LaterComponent kLaterComponents[] = {
    {"model", "flux"},
};

}  // namespace

void check_not_built(const JobConfig& config, const GivenValues& given,
                     const std::set<std::string>& taken, Diagnostics& diagnostics) {
  for (const Feature& feature : kFeatures) {
    if (!given.is_sound(feature.key) || !feature.is_asked(config)) continue;
    if (taken.contains(feature.key)) continue;
    const Given* asked = given.find(feature.key);
    const std::string value = asked ? " = " + to_json(asked->value) : "";
    diagnostics.not_built(asked ? asked->where : SourceRange{},
                          std::string(feature.what) + " not built yet: " + feature.key + value);
  }
}

bool is_built_later(std::string_view kind, std::string_view name) {
  for (const LaterComponent& later : kLaterComponents)
    if (later.kind == kind && later.name == name) return true;
  return false;
}

}  // namespace titan::core
