// Matrix multiplication with a weight: y = x Wᵀ, or y = x Wᵀ + b. Its kernel can be swapped
// (float8, LoRA, split backward).
#pragma once

#include <memory>
#include <optional>

#include <titan/nn/kernel_seam.h>
#include <titan/nn/module.h>

namespace titan::nn {

/// How tensor parallelism may cut a weight of shape (out, in).
enum class WeightLayout {
  replicated,
  column,  ///< rows of the weight: each rank gives a part of the output features
  row,     ///< columns of the weight: each rank gives a partial sum
  vocab,   ///< rows are words of the vocabulary
};

/// Computes what Linear does; converters swap it or go around it.
class TITAN_API LinearKernel {
 public:
  virtual ~LinearKernel();
  /// x (..., in), weight (out, in) -> (..., out). Differentiable in both.
  virtual at::Tensor matmul(const at::Tensor& x, Parameter& weight) = 0;
};

/// x (..., in) -> (..., out); parameters "weight" (out, in) and, where it is asked for, "bias"
/// (out), which is added to what the kernel gives.
class TITAN_API Linear final : public Module {
 public:
  /// `bias_init`: of the bias; none: there is none.
  Linear(int64_t in_features, int64_t out_features, WeightLayout layout, const Init& init,
         const std::optional<Init>& bias_init = {});
  ~Linear() override;

  Parameter& weight() { return weight_; }
  /// Null: none. Cut like the weight's rows where these are cut. Where ranks each give a part of a
  /// sum (WeightLayout::row), each adds its share of the whole bias.
  Parameter* bias() const { return bias_; }
  WeightLayout layout() const { return layout_; }
  /// From now on `owner`, a name for messages, computes instead of the layer. Throws a config Error
  /// that names both when another one does already.
  void set_kernel(std::string owner, std::unique_ptr<LinearKernel> kernel);
  /// `owner` goes around the present kernel, whosever it is.
  void wrap_kernel(std::string owner, const KernelAround<LinearKernel>& around);
  /// From now on `owner` computes all of what holds this layer, which runs no more. Throws a config
  /// Error when somebody computes here or goes around it; both are refused from now on.
  void skip_kernel(std::string owner);
  const KernelOwners& kernel_owners() const { return kernel_.owners(); }
  /// Whether the layer computes itself.
  bool has_plain_kernel() const { return kernel_.owners().empty(); }
  std::string computed_by() const override { return kernel_.owners().text(); }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  std::string place() const;

  Parameter& weight_;
  Parameter* bias_;  // null: none
  WeightLayout layout_;
  KernelSeam<LinearKernel> kernel_;
};

}  // namespace titan::nn
