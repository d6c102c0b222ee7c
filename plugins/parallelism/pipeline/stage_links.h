// Sends and receives tensors between one rank and the ranks of neighbouring stages.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include <titan/dist/group.h>
#include <titan/pipeline_schedule.h>

namespace titan::pipeline {

/// Transfers activations and their gradients between stages, each under its own tag. Calls come in
/// the order of the plan's sends and receives. So ranks do not deadlock even if a send completes
/// only with its receive. Thread: trainer thread.
class StageLinks {
 public:
  /// `plan` outlives this object.
  StageLinks(const PipelinePlan& plan, const dist::Group& group) : plan_(plan), group_(group) {}

  /// `action`: send_output or send_grad.
  void send(const PipelineAction& action, const at::Tensor& tensor);
  /// `action`: receive_input or receive_grad; `into` is filled when `take` returns.
  void start_receive(const PipelineAction& action, const at::Tensor& into);
  /// The tensor of a receive that was started; waits for it.
  at::Tensor take(PipelineAction::Kind kind, int stage, int microbatch);
  /// Waits until all sends have completed.
  void finish();
  /// Discards the state of an interrupted step without waiting.
  void abandon() { sent_.clear(), receiving_.clear(); }

 private:
  struct Receive {
    at::Tensor tensor;
    dist::Pending pending;
  };
  using Key = std::pair<bool, std::pair<int, int>>;  // is a gradient, (stage, microbatch)

  /// Tag of the tensor between stage `lower` and the next stage.
  int tag(bool is_grad, int lower, int microbatch) const;

  const PipelinePlan& plan_;
  dist::Group group_;
  std::deque<dist::Pending> sent_;
  std::map<Key, Receive> receiving_;
};

}  // namespace titan::pipeline
