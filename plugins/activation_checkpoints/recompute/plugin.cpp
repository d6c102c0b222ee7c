// Registers activation_checkpoint:full, :selective and :memory_budget.
#include <algorithm>

#include <titan/plugin.h>

#include "budget.h"

namespace titan::recompute {
namespace {

template <class Options, class T>
void declare_common(ComponentBuilder<T>& component) {
  component
      .option("early_stop", static_cast<bool Options::*>(&Options::early_stop),
              "End a recomputation once backward has all tensors that it needs")
      .option("preserve_rng_state", static_cast<bool Options::*>(&Options::preserve_rng_state),
              "Recompute with the same random numbers")
      .option("determinism_check", static_cast<std::string Options::*>(&Options::determinism_check),
              "Compare recomputed tensors by shape and dtype")
      .one_of({"default", "none"})
      .option("debug", static_cast<bool Options::*>(&Options::debug),
              "Log once what each block keeps and recomputes");
}

void check_selective(const SelectiveOptions& options, const JobView&, RuleReport& report) {
  const std::string& text = options.selective_ac_option;
  const bool is_count =
      !text.empty() && text.size() < 10 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (text == "op" || is_count) return;
  report.error(
      "selective_ac_option",
      "activation_checkpoint.selective_ac_option must be a number of blocks or 'op', got '" + text +
          "'",
      "default \"2\"");
}

}  // namespace
}  // namespace titan::recompute

TITAN_PLUGIN(plugin) {
  using namespace titan::recompute;
  plugin.add<Full>("full", "Blocks keep only their input and run again in their backward.")
      .options(declare_common<CommonOptions, Full>);
  using O = SelectiveOptions;
  plugin
      .add<Selective>(
          "selective",
          "Every n-th block runs again in its backward, or all blocks except costly results.")
      .option("selective_ac_option", &O::selective_ac_option,
              "Every N-th block (0: every block), or \"op\" to choose by operation")
      .option("per_op_sac_force_recompute_mm_shapes_by_fqns",
              &O::per_op_sac_force_recompute_mm_shapes_by_fqns,
              "Linear layers whose GEMM shape is always recomputed with \"op\"")
      .options(declare_common<O, Selective>)
      .check(check_selective);
  using B = BudgetOptions;
  plugin
      .add<MemoryBudget>("memory_budget",
                         "Blocks keep the results with the most FLOPs per byte, up to a budget.")
      .option(
          "memory_budget", &B::memory_budget,
          "Share of the bytes that could be kept; 0: only inputs of blocks, 1: every costly result")
      .between(0, 1)
      .option("kept_bytes", &B::kept_bytes,
              "Bytes that the blocks of a rank keep in addition to their inputs, per microbatch; "
              "overrides memory_budget; computed from memory_limit if that is set; -1: use "
              "memory_budget")
      .at_least(-1)
      .option("visualize_memory_budget_pareto", &B::visualize_memory_budget_pareto,
              "Plot the bytes kept and FLOPs recomputed by budget, under job.dump_folder")
      .options(declare_common<B, MemoryBudget>);
}
