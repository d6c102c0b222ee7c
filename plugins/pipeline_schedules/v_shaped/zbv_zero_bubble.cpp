// See zbv_zero_bubble.h.
#include "zbv_zero_bubble.h"

#include <algorithm>

#include "two_stages.h"

namespace titan::pipeline_schedules {
namespace {

std::vector<PipelineAction> rank_actions(const PipelineShape& shape, int rank,
                                         int num_microbatches) {
  VRankList list(shape, rank);
  const int ranks_from_here = shape.num_ranks - rank;
  int weight_grads[2] = {0, 0};
  const auto input_grad_and_weight_grad = [&](int chunk) {
    list.input_grad(chunk);
    list.weight_grad(chunk, weight_grads[chunk]++);
  };

  // warmup: down the V, then alternating between both chunks
  for (int i = 0; i < 2 * ranks_from_here - 1; ++i) list.forward(0);
  for (int i = 0; i < rank; ++i) {
    list.forward(1);
    list.forward(0);
  }
  for (int i = 0; i < ranks_from_here; ++i) {
    list.forward(1);
    input_grad_and_weight_grad(1);
  }
  // steady
  while (list.num_forwards(1) < list.num_forwards(0) || list.num_forwards(0) < num_microbatches) {
    if (list.num_forwards(0) < num_microbatches) list.forward(0);
    input_grad_and_weight_grad(0);
    list.forward(1);
    input_grad_and_weight_grad(1);
  }
  // cooldown: actions that other ranks wait for come first, weight gradients fill the rest
  for (int i = 0; i < rank; ++i) {
    list.input_grad(0);
    list.input_grad(1);
  }
  for (int i = 0; i < ranks_from_here; ++i) input_grad_and_weight_grad(0);
  for (const int chunk : {1, 0})
    while (weight_grads[chunk] < list.num_backwards(chunk))
      list.weight_grad(chunk, weight_grads[chunk]++);
  return list.take();
}

}  // namespace

std::optional<std::string> ZbvZeroBubble::problem(const PipelineShape& shape) const {
  return needs_two_stages_per_rank(shape);
}

PipelineTable ZbvZeroBubble::plan(const PipelineShape& shape) const {
  PipelineTable table;
  // the rules hold for a full pipeline only
  const int planned = std::max(2 * shape.num_ranks - 1, shape.num_microbatches);
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    auto actions = rank_actions(shape, rank, planned);
    std::erase_if(actions, [&](const PipelineAction& action) {
      return action.microbatch >= shape.num_microbatches;
    });
    table.push_back(std::move(actions));
  }
  return table;
}

}  // namespace titan::pipeline_schedules
