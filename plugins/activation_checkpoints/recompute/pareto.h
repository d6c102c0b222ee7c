// Trade-off of memory against recomputation, as a table and a plot. Used by mode = "memory_budget"
// with activation_checkpoint.visualize_memory_budget_pareto.
#pragma once

#include <string>
#include <vector>

#include "kept_results.h"

namespace titan::recompute {

/// Effect of a budget on all blocks of a rank, per microbatch.
struct ParetoPoint {
  double budget = 0;            ///< share of the bytes that could be kept
  int64_t kept_bytes = 0;       ///< in addition to the blocks' inputs
  double recomputed_flops = 0;  ///< of the operations whose results are not kept
  double recomputed_share = 0;  ///< of the FLOPs of all of them
};

/// Points of the budgets 0, 0.05, ..., 1 and `chosen`, in ascending order, by choose_within.
std::vector<ParetoPoint> pareto_points(const std::vector<Candidate>& candidates, size_t num_blocks,
                                       double chosen);

/// budget,kept_bytes,recomputed_flops,recomputed_share
std::string pareto_csv(const std::vector<ParetoPoint>& points);
/// A self-contained SVG: no script, no font, no other file.
std::string pareto_svg(const std::vector<ParetoPoint>& points, double chosen,
                       const std::string& title);

/// Writes <folder>/memory_budget_pareto/rank<rank>.svg and .csv, and logs the paths. A failed write
/// is a warning, because the run does not depend on it.
void write_pareto(const std::vector<ParetoPoint>& points, double chosen, const std::string& folder,
                  int rank);

}  // namespace titan::recompute
