// How much each budget of memory keeps, and what is then computed again: as numbers and as a
// drawing. activation_checkpoint.visualize_memory_budget_pareto.
#pragma once

#include <string>
#include <vector>

#include "kept_results.h"

namespace titan::recompute {

/// What a budget comes to for all blocks of a rank, per microbatch.
struct ParetoPoint {
  double budget = 0;            ///< share of what could be kept
  int64_t kept_bytes = 0;       ///< beside the blocks' inputs
  double recomputed_flops = 0;  ///< of the operations whose results are not kept
  double recomputed_share = 0;  ///< of the FLOPs of all of them
};

/// Budgets 0, 0.05, ..., 1 as choose_within plans them, and `chosen` among them in its place.
std::vector<ParetoPoint> pareto_points(const std::vector<Candidate>& candidates, size_t num_blocks,
                                       double chosen);

/// budget,kept_bytes,recomputed_flops,recomputed_share
std::string pareto_csv(const std::vector<ParetoPoint>& points);
/// Stands alone: no script, no font, no file beside it. `title`: what it is of.
std::string pareto_svg(const std::vector<ParetoPoint>& points, double chosen,
                       const std::string& title);

/// Writes <folder>/memory_budget_pareto/rank<rank>.svg and .csv, and says so. What cannot be
/// written is a warning: the run does not depend on it.
void write_pareto(const std::vector<ParetoPoint>& points, double chosen, const std::string& folder,
                  int rank);

}  // namespace titan::recompute
