#include "stage_links.h"

#include <titan/error.h>

namespace titan::pipeline {
namespace {

using Kind = PipelineAction::Kind;

/// Most sends in flight, whose memory is kept.
constexpr size_t kMaxInFlight = 16;

}  // namespace

int StageLinks::tag(bool is_grad, int lower, int microbatch) const {
  return (microbatch * plan_.shape.num_stages + lower) * 2 + (is_grad ? 1 : 0);
}

void StageLinks::send(const PipelineAction& action, const at::Tensor& tensor) {
  const bool is_grad = action.kind == Kind::send_grad;
  const int lower = is_grad ? action.stage - 1 : action.stage;
  const int peer = plan_.rank_of_stage[static_cast<size_t>(is_grad ? lower : lower + 1)];
  sent_.push_back(group_.send(tensor, peer, tag(is_grad, lower, action.microbatch)));
  for (; sent_.size() > kMaxInFlight; sent_.pop_front()) sent_.front().wait();
}

void StageLinks::start_receive(const PipelineAction& action, const at::Tensor& into) {
  const bool is_grad = action.kind == Kind::receive_grad;
  const int lower = is_grad ? action.stage : action.stage - 1;
  const int peer = plan_.rank_of_stage[static_cast<size_t>(is_grad ? lower + 1 : lower)];
  receiving_[{is_grad, {action.stage, action.microbatch}}] = {
      into, group_.receive(into, peer, tag(is_grad, lower, action.microbatch))};
}

at::Tensor StageLinks::take(Kind kind, int stage, int microbatch) {
  const auto found = receiving_.find({kind == Kind::receive_grad, {stage, microbatch}});
  TITAN_ASSERT(found != receiving_.end(), "no receive was started for ",
               to_string({kind, stage, microbatch}));
  Receive receive = std::move(found->second);
  receiving_.erase(found);
  receive.pending.wait();
  return receive.tensor;
}

void StageLinks::finish() {
  for (dist::Pending& pending : sent_) pending.wait();
  sent_.clear();
}

}  // namespace titan::pipeline
