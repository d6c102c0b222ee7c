// Gated feed-forward layer: w2(silu(w1 x) ⊙ w3 x). Shazeer, 2020.
#pragma once

#include <memory>

#include <titan/nn/kernel_seam.h>
#include <titan/nn/linear.h>
#include <titan/nn/module.h>

namespace titan::nn {

struct FeedForwardOptions {
  int64_t dim = 0;
  int64_t hidden_dim = 0;
  Init gate_init;    ///< of w1
  Init output_init;  ///< of w2 and w3 (torchtitan draws both by the depth rule)
};

/// Computes the gate between the projections: silu(gate) ⊙ up.
class TITAN_API SwigluKernel {
 public:
  virtual ~SwigluKernel();
  /// gate and up (..., hidden_dim), of one dtype -> the same. Differentiable in both.
  virtual at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) = 0;
};

/// This rank's shards of the projections, as their layers read them: (hidden, dim), (dim, hidden)
/// and (hidden, dim).
struct FeedForwardWeights {
  Parameter& w1;
  Parameter& w2;
  Parameter& w3;
};

/// Computes the whole layer in one kernel.
class TITAN_API FeedForwardKernel {
 public:
  virtual ~FeedForwardKernel();
  /// x (..., dim) -> w2(silu(w1 x) ⊙ w3 x) (..., dim). Differentiable in x and the weights.
  virtual at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights,
                                  const Batch& batch) = 0;
};

/// x (..., dim) -> (..., dim). Children w1 and w3 (column), w2 (row).
class TITAN_API FeedForward final : public Module {
 public:
  explicit FeedForward(const FeedForwardOptions& options);
  ~FeedForward() override;

  FeedForwardWeights weights() { return {w1_.weight(), w2_.weight(), w3_.weight()}; }
  /// Of the whole layer, as Linear::set_kernel and wrap_kernel. set_kernel also replaces the
  /// projections and the gate, which no longer run. It throws if another plugin computes in one of
  /// them, and later attempts to do so throw.
  void set_kernel(std::string owner, std::unique_ptr<FeedForwardKernel> kernel);
  void wrap_kernel(std::string owner, const KernelAround<FeedForwardKernel>& around);
  const KernelOwners& kernel_owners() const { return kernel_.owners(); }
  /// Of the gate only.
  void set_swiglu_kernel(std::string owner, std::unique_ptr<SwigluKernel> kernel);
  void wrap_swiglu_kernel(std::string owner, const KernelAround<SwigluKernel>& around);
  const KernelOwners& swiglu_kernel_owners() const { return swiglu_.owners(); }
  std::string computed_by() const override;

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  class Composed;
  std::string place() const;

  Linear& w1_;
  Linear& w2_;
  Linear& w3_;
  KernelSeam<SwigluKernel> swiglu_;
  KernelSeam<FeedForwardKernel> kernel_;
};

}  // namespace titan::nn
