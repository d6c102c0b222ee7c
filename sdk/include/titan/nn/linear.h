// Matrix multiplication with a weight: y = x Wᵀ, or y = x Wᵀ + b. Its kernel can be replaced
// (float8, LoRA, split backward).
#pragma once

#include <memory>
#include <optional>

#include <titan/nn/kernel_seam.h>
#include <titan/nn/module.h>

namespace titan::nn {

/// How tensor parallelism may shard a weight of shape (out, in).
enum class WeightLayout {
  replicated,
  column,  ///< rows of the weight: each rank computes some of the output features
  row,     ///< columns of the weight: each rank computes a partial sum
  vocab,   ///< rows of the weight, which are entries of the vocabulary
};

/// Computes Linear; converters replace or wrap it.
class TITAN_API LinearKernel {
 public:
  virtual ~LinearKernel();
  /// x (..., in), weight (out, in) -> (..., out). Differentiable in both.
  virtual at::Tensor matmul(const at::Tensor& x, Parameter& weight) = 0;
};

/// x (..., in) -> (..., out); parameters "weight" (out, in) and, if requested, "bias" (out), which
/// is added to the kernel's result.
class TITAN_API Linear final : public Module {
 public:
  /// `bias_init`: of the bias; unset: no bias.
  Linear(int64_t in_features, int64_t out_features, WeightLayout layout, const Init& init,
         const std::optional<Init>& bias_init = {});
  ~Linear() override;

  Parameter& weight() { return weight_; }
  /// Null: none. Sharded like the weight's rows if those are sharded. If ranks compute partial sums
  /// (WeightLayout::row), each adds its share of the whole bias.
  Parameter* bias() const { return bias_; }
  WeightLayout layout() const { return layout_; }
  /// From now on the kernel of `owner`, a name for messages, computes instead of the layer. Throws
  /// a config Error that names both if another plugin has replaced or wrapped the kernel.
  void set_kernel(std::string owner, std::unique_ptr<LinearKernel> kernel);
  /// `owner` wraps the current kernel, including one of another plugin.
  void wrap_kernel(std::string owner, const KernelAround<LinearKernel>& around);
  /// From now on `owner` computes the enclosing layer as a whole, and this layer no longer runs.
  /// Throws a config Error if a plugin has replaced or wrapped the kernel; later attempts to do so
  /// throw, too.
  void skip_kernel(std::string owner);
  const KernelOwners& kernel_owners() const { return kernel_.owners(); }
  /// Whether the layer's own kernel computes, without wrappers.
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
