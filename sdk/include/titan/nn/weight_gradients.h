// The second half of a split backward: the gradients of weights, computed later than that of the
// stage's input. Qi et al., 2023 (zero bubble pipelines).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/export.h>
#include <titan/nn/parameter.h>

namespace titan::nn {

/// What the weights' gradients of one forward still need. Layers that run while a Scope lives on
/// their thread remember its queue; in the backward of that forward they add the work for their
/// weight's gradient to it when it defers, and do it at once when it does not. A layer that knows
/// nothing of queues is right too: its weight's gradient comes with the input's.
class TITAN_API WeightGradientQueue {
 public:
  class TITAN_API Scope {
   public:
    explicit Scope(std::shared_ptr<WeightGradientQueue> queue);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    std::shared_ptr<WeightGradientQueue> before_;
  };
  /// Of the innermost scope on this thread; null when there is none.
  static const std::shared_ptr<WeightGradientQueue>& current();

  /// From now on backward adds to the queue.
  void defer() { is_deferring_ = true; }
  bool is_deferring() const { return is_deferring_; }
  /// [the thread that runs backward]
  void add(std::function<void()> work) { work_.push_back(std::move(work)); }
  /// [the thread that runs backward] The gradient of `weight`, for the backward of a layer to
  /// return; undefined where `queue`, which may be null, defers it. `gradient` records no graph.
  static at::Tensor give_or_defer(const std::shared_ptr<WeightGradientQueue>& queue,
                                  Parameter& weight, std::function<at::Tensor()> gradient);
  /// [trainer thread] Does what was added, in its order, and frees what it needed.
  void run();

 private:
  bool is_deferring_ = false;
  std::vector<std::function<void()>> work_;
};

/// x · weightᵀ as ops::linear, with the weight's half of the backward in the current queue, if
/// there is one.
TITAN_API at::Tensor linear(const at::Tensor& x, Parameter& weight);

}  // namespace titan::nn
