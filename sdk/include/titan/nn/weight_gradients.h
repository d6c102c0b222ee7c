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

/// The deferred weight gradients of one forward. Layers that run while a Scope is alive on their
/// thread remember its queue. In the backward of that forward, a deferring queue receives the work
/// for their weight gradients; otherwise they do it at once. A layer without support for queues is
/// also correct: it computes the weight's gradient with the input's.
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
  /// The queue of the innermost scope on this thread; null if there is none.
  static const std::shared_ptr<WeightGradientQueue>& current();

  /// From now on backward adds to the queue.
  void defer() { is_deferring_ = true; }
  bool is_deferring() const { return is_deferring_; }
  /// [the thread that runs backward]
  void add(std::function<void()> work) { work_.push_back(std::move(work)); }
  /// [the thread that runs backward] The gradient of `weight`, which the backward of a layer
  /// returns; undefined if `queue` (may be null) defers it. `gradient` records no graph.
  static at::Tensor give_or_defer(const std::shared_ptr<WeightGradientQueue>& queue,
                                  Parameter& weight, std::function<at::Tensor()> gradient);
  /// [trainer thread] Runs the queued work in order and frees its tensors.
  void run();

 private:
  bool is_deferring_ = false;
  std::vector<std::function<void()>> work_;
};

/// x · weightᵀ as ops::linear. The weight's half of the backward goes to the current queue, if
/// there is one.
TITAN_API at::Tensor linear(const at::Tensor& x, Parameter& weight);

}  // namespace titan::nn
