// Matrix multiplication with a weight: y = x Wᵀ. Its kernel can be swapped (float8, LoRA, split
// backward).
#pragma once

#include <memory>

#include <titan/nn/module.h>

namespace titan::nn {

/// How tensor parallelism may cut a weight of shape (out, in).
enum class WeightLayout {
  replicated,
  column,  ///< rows of the weight: each rank gives a part of the output features
  row,     ///< columns of the weight: each rank gives a partial sum
  vocab,   ///< rows are words of the vocabulary
};

/// Computes what Linear does; converters swap it.
class TITAN_API LinearKernel {
 public:
  virtual ~LinearKernel();
  /// x (..., in), weight (out, in) -> (..., out). Differentiable in both.
  virtual at::Tensor matmul(const at::Tensor& x, Parameter& weight) = 0;
};

/// x (..., in) -> (..., out); parameter "weight" (out, in), no bias.
class TITAN_API Linear final : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, WeightLayout layout, const Init& init);
  ~Linear() override;

  Parameter& weight() { return weight_; }
  WeightLayout layout() const { return layout_; }
  void set_kernel(std::unique_ptr<LinearKernel> kernel);
  /// For a kernel that goes around another; the layer needs a new one then.
  std::unique_ptr<LinearKernel> take_kernel() { return std::move(kernel_); }
  /// Whether nobody has swapped the kernel.
  bool has_plain_kernel() const { return has_plain_kernel_; }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  Parameter& weight_;
  WeightLayout layout_;
  std::unique_ptr<LinearKernel> kernel_;
  bool has_plain_kernel_ = true;
};

}  // namespace titan::nn
