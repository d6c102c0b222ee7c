#include "order.h"

#include <vector>

#include <titan/name_pattern.h>

namespace titan::conformance {
namespace {

struct Basis {
  const char* kind;
  std::vector<std::string> tests;  ///< patterns
  std::vector<std::string> built_on;
};

const std::vector<Basis>& bases() {
  static const std::vector<Basis> kBases = {
      {"*", {"limits"}, {"defaults"}},
      {"optimizer", {"no_gradient"}, {"updates"}},
      {"optimizer", {"declared_state", "no_hidden_state"}, {"deterministic"}},
      {"optimizer",
       {"layout_*", "accumulation", "resume", "step_member"},
       {"updates", "deterministic", "declared_state", "no_hidden_state"}},
      {"lr_scheduler", {"trains"}, {"defined_everywhere"}},
      {"lr_scheduler", {"resume"}, {"defined_everywhere", "pure", "trains"}},
      {"dataset", {"*"}, {"documents"}},
      {"dataset", {"threads", "seek", "any_ranks", "resume", "epochs"}, {"repeatable"}},
      {"dataset", {"resume", "any_ranks", "epochs"}, {"seek", "threads", "fingerprint"}},
      {"loss", {"gradient", "parts", "ignored_labels", "adds_up", "meta_device"}, {"finite"}},
      {"loss", {"likelihood_part"}, {"parts"}},
      {"loss", {"ignored_labels"}, {"gradient"}},
      {"loss", {"adds_up"}, {"ignored_labels"}},
      {"loss",
       {"layouts", "accumulation"},
       {"finite", "gradient", "ignored_labels", "adds_up", "inputs_kept", "parts"}},
      {"loss", {"accumulation"}, {"layouts"}},
      {"logger", {"ranks", "resume"}, {"writes", "same_results"}},
      {"tokenizer", {"*"}, {"token_counts"}},
      {"tokenizer", {"round_trip", "special_tokens", "trains", "invalid_utf8"}, {"ids_in_range"}},
      {"tokenizer", {"appends", "threads"}, {"deterministic"}},
      {"chat_template", {"*"}, {"renders"}},
      {"chat_template", {"threads", "generation_prompt"}, {"deterministic"}},
      {"pipeline_schedule", {"runs"}, {"each_once"}},
      {"pipeline_schedule", {"trains"}, {"runs", "each_once", "accepts_shapes", "deterministic"}},
      {"model", {"*"}, {"builds_on_meta", "stable_names"}},
      {"model", {"*"}, {"shapes"}},
      {"model", {"learns", "layout_*", "recomputed", "resume"}, {"gradients"}},
      {"model", {"layout_*", "recomputed", "resume", "generates"}, {"initial_values"}},
      {"model", {"layout_pipeline"}, {"cut_anywhere"}},
      {"model", {"generates", "layout_context"}, {"causal"}},
      {"activation_checkpoint", {"layout_*"}, {"values"}},
      {"converter", {"layout_*", "recomputed", "accumulation", "resume"}, {"acts", "values"}},
      {"compile_backend",
       {"acts", "exact_values", "shapes", "layout_*", "recomputed", "resume"},
       {"values"}},
      {"compile_backend", {"layout_*", "shapes", "recomputed", "resume"}, {"exact_values"}},
      {"parallelism", {"*"}, {"acts"}},
      {"parallelism", {"alone"}, {"same_start"}},
      {"parallelism",
       {"with_*", "accumulation", "recomputed", "resume", "to_one_rank", "reduces", "executes"},
       {"same_start", "alone"}},
      {"parallelism", {"reduces"}, {"accumulation"}},
      {"parallelism", {"to_one_rank"}, {"resume"}},
      {"watcher", {"accumulation", "layout_*", "recomputed", "resume"}, {"same_results"}},
      {"command", {"answers"}, {"exit_codes"}},
      {"device", {"trains", "same_bits", "connects"}, {"computes"}},
      {"device", {"connects"}, {"trains", "same_bits"}},
  };
  return kBases;
}

}  // namespace

std::string failed_basis(const Test& test, const std::set<std::string>& failed) {
  const std::string_view kind = test.kind;
  if (kind != "*" && kind != "command" && kind != "flavor" && failed.contains("defaults"))
    return "defaults";
  for (const Basis& basis : bases()) {
    if (kind != basis.kind || !matches_any(test.name, basis.tests)) continue;
    for (const std::string& name : basis.built_on)
      if (name != test.name && failed.contains(name)) return name;
  }
  return "";
}

}  // namespace titan::conformance
