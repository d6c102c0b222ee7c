// See dual_pipe_v.h.
#include "dual_pipe_v.h"

#include <deque>
#include <utility>

#include "two_stages.h"

namespace titan::pipeline_schedules {
namespace {

/// Builds the list of one rank; weight gradients wait in a queue over both chunks.
class DualPipeRank {
 public:
  DualPipeRank(const PipelineShape& shape, int rank)
      : list_(shape, rank),
        rank_(rank),
        ranks_behind_(shape.num_ranks - rank - 1),
        num_pairs_(shape.num_microbatches - 2 * shape.num_ranks + rank + 1),
        is_last_(rank == shape.num_ranks - 1) {}

  std::vector<PipelineAction> actions() {
    warm_up();
    run_pairs();
    cool_down();
    return list_.take();
  }

 private:
  void warm_up() {
    for (int i = 0; i < 2 * ranks_behind_; ++i) list_.forward(0);
    for (int i = 0; i < rank_ + 1; ++i) {
      list_.forward(0);
      list_.forward(1);
    }
    for (int i = 0; i < ranks_behind_; ++i) {
      input_grad(1);
      next_weight_grad();
      list_.forward(1);
    }
  }

  void run_pairs() {
    for (int i = 0; i < num_pairs_; ++i) {
      if (i == 0 && is_last_) {
        // separately: in a pair the forward would delay the backward that other ranks wait for
        list_.forward(0);
        list_.backward(1);
      } else {
        list_.overlapped(0, 1);
      }
      list_.overlapped(1, 0);
    }
    for (int i = 0; i < ranks_behind_; ++i) {
      list_.backward(1);
      list_.overlapped(1, 0);
    }
  }

  void cool_down() {
    // the second half of these backwards is split; odd ranks switch before chunk 1, even ranks
    // after
    const int half = (rank_ + 1) / 2;
    for (int i = 0; i < rank_ + 1; ++i) {
      if (i > half || (i == half && rank_ % 2 == 1))
        input_grad(1);
      else
        list_.backward(1);
      if (i >= half)
        input_grad(0);
      else
        list_.backward(0);
    }
    for (int i = 0; i < ranks_behind_; ++i) {
      next_weight_grad();
      input_grad(0);
    }
    while (!waiting_.empty()) next_weight_grad();
  }

  void input_grad(int chunk) {
    waiting_.emplace_back(chunk, list_.num_backwards(chunk));
    list_.input_grad(chunk);
  }
  void next_weight_grad() {
    if (waiting_.empty()) return;
    const auto [chunk, microbatch] = waiting_.front();
    waiting_.pop_front();
    list_.weight_grad(chunk, microbatch);
  }

  VRankList list_;
  const int rank_, ranks_behind_, num_pairs_;
  const bool is_last_;
  std::deque<std::pair<int, int>> waiting_;  // chunk and microbatch of deferred weight gradients
};

}  // namespace

std::optional<std::string> DualPipeV::problem(const PipelineShape& shape) const {
  if (auto wrong = needs_two_stages_per_rank(shape)) return wrong;
  if (shape.num_microbatches >= shape.num_stages) return std::nullopt;
  return "needs as many microbatches as stages, but there are " +
         std::to_string(shape.num_microbatches) + " microbatches for " +
         std::to_string(shape.num_stages) + " stages";
}

PipelineTable DualPipeV::plan(const PipelineShape& shape) const {
  PipelineTable table;
  for (int rank = 0; rank < shape.num_ranks; ++rank)
    table.push_back(DualPipeRank(shape, rank).actions());
  return table;
}

}  // namespace titan::pipeline_schedules
