// What one rank of a pipeline sends to the ranks of neighbouring stages and receives from them.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include <titan/dist/group.h>
#include <titan/pipeline_schedule.h>

namespace titan::pipeline {

/// Activations and their gradients between stages, each under a tag of its own. All calls come in
/// the order of the plan's sends and receives, which lets no two ranks wait for each other even
/// where a send ends only with its receive. Thread: trainer thread.
class StageLinks {
 public:
  /// `plan` outlives this object.
  StageLinks(const PipelinePlan& plan, const dist::Group& group) : plan_(plan), group_(group) {}

  /// `action`: send_output or send_grad.
  void send(const PipelineAction& action, const at::Tensor& tensor);
  /// `action`: receive_input or receive_grad; `into` is filled when `take` returns.
  void start_receive(const PipelineAction& action, const at::Tensor& into);
  /// What a receive that was started has brought.
  at::Tensor take(PipelineAction::Kind kind, int stage, int microbatch);
  /// Waits until everything that was sent has left.
  void finish();
  /// Forgets what a step that was cut short has left; waits for nothing.
  void abandon() { sent_.clear(), receiving_.clear(); }

 private:
  struct Receive {
    at::Tensor tensor;
    dist::Pending pending;
  };
  using Key = std::pair<bool, std::pair<int, int>>;  // is a gradient, (stage, microbatch)

  /// Of the tensor between `lower` and the stage above it.
  int tag(bool is_grad, int lower, int microbatch) const;

  const PipelinePlan& plan_;
  dist::Group group_;
  std::deque<dist::Pending> sent_;
  std::map<Key, Receive> receiving_;
};

}  // namespace titan::pipeline
