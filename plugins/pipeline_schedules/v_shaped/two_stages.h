// Shared by the V-shaped schedules: a rank's two stages, and the next microbatch of each kind of
// action on each. Used by zbv_zero_bubble.cpp and dual_pipe_v.cpp.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

/// Requires exactly 2 stages per rank.
std::optional<std::string> needs_two_stages_per_rank(const PipelineShape& shape);

/// The list of one rank. Chunk 0 is the rank's stage on the way down the V, chunk 1 the one on the
/// way back.
class VRankList {
 public:
  VRankList(const PipelineShape& shape, int rank) : stages_{rank, shape.num_stages - 1 - rank} {}

  void forward(int chunk) { add(PipelineAction::Kind::forward, chunk, forwards_[chunk]++); }
  /// Whole backwards and input gradients share one count.
  void backward(int chunk) { add(PipelineAction::Kind::backward, chunk, backwards_[chunk]++); }
  void input_grad(int chunk) { add(PipelineAction::Kind::input_grad, chunk, backwards_[chunk]++); }
  void weight_grad(int chunk, int microbatch) {
    add(PipelineAction::Kind::weight_grad, chunk, microbatch);
  }
  /// Forward of one chunk overlapped with a backward of the other.
  void overlapped(int forward_chunk, int backward_chunk);

  int num_forwards(int chunk) const { return forwards_[chunk]; }
  int num_backwards(int chunk) const { return backwards_[chunk]; }
  std::vector<PipelineAction> take() { return std::move(actions_); }

 private:
  void add(PipelineAction::Kind kind, int chunk, int microbatch) {
    actions_.push_back({kind, stages_[chunk], microbatch});
  }

  std::array<int, 2> stages_;
  std::array<int, 2> forwards_{}, backwards_{};
  std::vector<PipelineAction> actions_;
};

}  // namespace titan::pipeline_schedules
