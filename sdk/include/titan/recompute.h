// Which results a recomputation does not have to compute again: the costly operations of a layer
// ask whether theirs is kept. Operations call `keepable`; activation checkpointing implements
// RecomputeScope.
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
    routing,         ///< which experts tokens go to: always kept, for a tie that is decided again
                     ///< may be decided otherwise
  };
  Kind kind;
  double flops = 0;                       ///< multiplications and additions
  std::array<int64_t, 2> shape = {0, 0};  ///< of a matmul: (in, out) as this rank computes it
  /// Of the operation's inputs that autograd saves for its backward, when it saves nothing of its
  /// result; 0: it does. What is saved after it may then tell that nobody needs the result.
  int num_saved_inputs = 0;
};

/// The layer that is running for the first time, or again. Thread: the one that runs it.
class TITAN_API RecomputeScope {
 public:
  using Compute = std::function<std::vector<at::Tensor>()>;

  virtual ~RecomputeScope();
  /// The results of `compute`, which is called at most once. Tensors have no history.
  virtual std::vector<at::Tensor> run(const Operation& operation, const Compute& compute) = 0;
  /// Whether what runs in this scope runs once more than the step asks for: again in its backward,
  /// or to be measured. Asked when the scope becomes the current one.
  virtual bool runs_again() const = 0;

  /// Of the innermost layer on this thread that is recomputed; null when there is none.
  static RecomputeScope* current();

  /// Floating-point operations that recomputations of this process have spent, for estimates and
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

/// For a layer, in its forward: whether it runs for the first time on a microbatch that is trained
/// on. Not so in validation, which records no gradients, nor where activation checkpointing runs it
/// again. What a layer counts or adds up over a step it does where this is true: once for each
/// token.
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
