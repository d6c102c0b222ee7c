// See interleaved.h.
#include "interleaved.h"

#include <algorithm>

#include "shape_rules.h"

namespace titan::pipeline_schedules {
namespace {

using Kind = PipelineAction::Kind;

int num_rounds(const PipelineShape& shape) {
  return std::max(1, shape.num_microbatches / shape.num_ranks);
}

std::optional<std::string> shape_problem(const PipelineShape& shape) {
  if (auto wrong = needs_several_stages_per_rank(shape)) return wrong;
  const int rounds = num_rounds(shape);
  if (shape.num_microbatches % rounds == 0) return std::nullopt;
  return "runs in " + std::to_string(rounds) + " rounds, whose number does not divide " +
         std::to_string(shape.num_microbatches) + " microbatches";
}

/// The list of one rank. Stages take turns, each with one round of microbatches; backwards start
/// from the last stage. This determines the stage of the n-th forward, backward and weight
/// gradient.
class RankList {
 public:
  RankList(const PipelineShape& shape, int rank)
      : shape_(shape),
        rank_(rank),
        microbatches_per_round_(shape.num_microbatches / num_rounds(shape)),
        forwards_(shape.stages_per_rank()),
        backwards_(shape.stages_per_rank()),
        weight_grads_(shape.stages_per_rank()) {}

  int num_per_kind() const { return shape_.num_microbatches * shape_.stages_per_rank(); }
  int microbatches_per_round() const { return microbatches_per_round_; }

  void forward() { add(Kind::forward, local_stage(num_forwards_++), forwards_); }
  void backward(Kind kind) { add(kind, mirrored(local_stage(num_backwards_++)), backwards_); }
  void weight_grad() {
    add(Kind::weight_grad, mirrored(local_stage(num_weight_grads_++)), weight_grads_);
  }

  int num_forwards() const { return num_forwards_; }
  int num_backwards() const { return num_backwards_; }
  int num_weight_grads() const { return num_weight_grads_; }
  std::vector<PipelineAction> take() { return std::move(actions_); }

 private:
  int local_stage(int n) const { return n / microbatches_per_round_ % shape_.stages_per_rank(); }
  int mirrored(int local) const { return shape_.stages_per_rank() - 1 - local; }
  void add(Kind kind, int local, std::vector<int>& next_microbatch) {
    actions_.push_back({kind, looped_stage(shape_, rank_, local), next_microbatch[local]++});
  }

  const PipelineShape shape_;
  const int rank_;
  const int microbatches_per_round_;
  std::vector<int> forwards_, backwards_, weight_grads_;  // next microbatch of each local stage
  int num_forwards_ = 0, num_backwards_ = 0, num_weight_grads_ = 0;
  std::vector<PipelineAction> actions_;
};

/// Number of forwards that a rank runs before its first backward: `forwards_per_hop` more for every
/// rank after it.
int num_warmup(const PipelineShape& shape, const RankList& list, int rank, int forwards_per_hop) {
  const int of_last_rank = (shape.stages_per_rank() - 1) * list.microbatches_per_round();
  return std::min(of_last_rank + forwards_per_hop * (shape.num_ranks - 1 - rank),
                  list.num_per_kind());
}

}  // namespace

std::optional<std::string> Interleaved1F1B::problem(const PipelineShape& shape) const {
  return shape_problem(shape);
}

PipelineTable Interleaved1F1B::plan(const PipelineShape& shape) const {
  PipelineTable table;
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    RankList list(shape, rank);
    const int warmup = num_warmup(shape, list, rank, 2);
    while (list.num_forwards() < warmup) list.forward();
    while (list.num_backwards() < list.num_per_kind()) {
      if (list.num_forwards() < list.num_per_kind()) list.forward();
      list.backward(Kind::backward);
    }
    table.push_back(list.take());
  }
  return table;
}

std::optional<std::string> InterleavedZeroBubble::problem(const PipelineShape& shape) const {
  return shape_problem(shape);
}

PipelineTable InterleavedZeroBubble::plan(const PipelineShape& shape) const {
  PipelineTable table;
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    RankList list(shape, rank);
    const int warmup = num_warmup(shape, list, rank, 1);
    while (list.num_forwards() < warmup) list.forward();
    while (list.num_backwards() < list.num_per_kind()) {
      if (list.num_forwards() < list.num_per_kind()) list.forward();
      list.backward(Kind::input_grad);
      // a rank stays `rank` weight gradients behind, to run them when it would wait for other ranks
      if (list.num_backwards() > rank) list.weight_grad();
    }
    while (list.num_weight_grads() < list.num_per_kind()) list.weight_grad();
    table.push_back(list.take());
  }
  return table;
}

}  // namespace titan::pipeline_schedules
