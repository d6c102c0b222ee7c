// Lets costly operations of a layer ask whether their result was kept, so that recomputation skips
// them. Operations call `keepable`; activation checkpointing implements RecomputeScope.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan {

/// One run of an operation whose result may be kept.
struct Operation {
  enum class Kind {
    matmul,          ///< of a linear layer's forward
    attention,       ///< with its log-sum-exp
    reduce_scatter,  ///< of activations over ranks
    all_to_all,      ///< of tokens over ranks
    maximum,         ///< the largest absolute value, for a scale
    routing,  ///< which experts tokens go to; always kept, because a recomputation may break ties
              ///< differently
  };
  Kind kind;
  double flops = 0;                       ///< multiplications and additions
  std::array<int64_t, 2> shape = {0, 0};  ///< of a matmul: (in, out) as this rank computes it
  /// How many inputs the operation saves for its backward, if it does not save its result; 0: it
  /// may save its result. If nothing else was saved since the operation began, its result need not
  /// be recomputed.
  int num_saved_inputs = 0;
};

/// One run of a layer, first or recomputed. Thread: the one that runs the layer.
class TITAN_API RecomputeScope {
 public:
  using Compute = std::function<std::vector<at::Tensor>()>;

  virtual ~RecomputeScope();
  /// The results of `compute`, or kept ones; calls `compute` at most once. The tensors have no
  /// autograd history.
  virtual std::vector<at::Tensor> run(const Operation& operation, const Compute& compute) = 0;
  /// Whether code in this scope runs in addition to the step's own run: recomputed in the backward,
  /// or for a measurement. Asked when the scope becomes the current one.
  virtual bool runs_again() const = 0;

  /// The scope of the innermost recomputed layer on this thread; null when there is none.
  static RecomputeScope* current();

  /// Floating-point operations that this process has spent on recomputation, for estimates and
  /// tests.
  static double recomputed_flops();
  static void add_recomputed(double flops);

  /// Makes `scope` the current one while alive.
  class TITAN_API Entry {
   public:
    explicit Entry(RecomputeScope* scope);
    ~Entry();
    Entry(const Entry&) = delete;

   private:
    RecomputeScope* before_;
    bool was_again_;
  };
};

/// Whether a layer's forward runs for the first time on a training microbatch. False in validation,
/// which records no gradients, and in recomputation. A layer updates its per-step counts and sums
/// only if this is true, so each token counts once.
TITAN_API bool is_first_run();

/// The result of `compute` (no arguments, a Tensor without history), or the kept one.
template <class Compute>
at::Tensor keepable(const Operation& operation, Compute&& compute) {
  RecomputeScope* scope = RecomputeScope::current();
  if (!scope) return compute();
  return scope->run(operation, [&] { return std::vector<at::Tensor>{compute()}; })[0];
}

/// The same for two tensors in a struct that can be made of both.
template <class Result, class Compute>
Result keepable_pair(const Operation& operation, Compute&& compute) {
  RecomputeScope* scope = RecomputeScope::current();
  if (!scope) return compute();
  const std::vector<at::Tensor> results = scope->run(operation, [&] {
    auto [first, second] = compute();
    return std::vector<at::Tensor>{std::move(first), std::move(second)};
  });
  return Result{results[0], results[1]};
}

}  // namespace titan
