// A stack of linear layers, one per group of input rows: the experts of a mixture. Its kernel can
// be replaced (float8, a fused grouped product), like that of Linear.
#pragma once

#include <memory>
#include <string>

#include <titan/nn/kernel_seam.h>
#include <titan/nn/module.h>

namespace titan::nn {

/// Computes GroupedLinear; converters replace or wrap it.
class TITAN_API GroupedLinearKernel {
 public:
  virtual ~GroupedLinearKernel();
  /// x (N, in) sorted by group, weight (G, out, in), rows per group -> (N, out). Differentiable in
  /// x and weight.
  virtual at::Tensor matmul(const at::Tensor& x, Parameter& weight, at::IntArrayRef rows) = 0;
};

/// x (N, in) -> (N, out) by ops::grouped_linear: the first rows are multiplied with the weight of
/// this rank's first group, and so on. Each group's bias is added, if there is one.
class TITAN_API GroupedLinear final : public Module {
 public:
  /// Parameter "weight" (num_groups, out, in), no bias.
  GroupedLinear(int64_t num_groups, int64_t in_features, int64_t out_features, const Init& init);
  /// `weight` (num_groups, out, in) and `bias` (num_groups, out; null: none) belong to the
  /// enclosing layer, which names them.
  explicit GroupedLinear(std::shared_ptr<Parameter> weight,
                         std::shared_ptr<Parameter> bias = nullptr);
  ~GroupedLinear() override;

  /// `rows`: number of rows of x per group; they sum to N. Runs through the wrappers of this layer,
  /// like every call of a module.
  at::Tensor operator()(const at::Tensor& x, at::IntArrayRef rows);

  Parameter& weight() { return *weight_; }
  /// Null: none.
  Parameter* bias() const { return bias_.get(); }
  /// [before the first forward] Multiplies the bias by `factor`: 1 / n if each of n ranks computes
  /// a partial sum.
  void scale_bias(double factor) { bias_factor_ = factor; }

  /// As Linear::set_kernel and wrap_kernel.
  void set_kernel(std::string owner, std::unique_ptr<GroupedLinearKernel> kernel);
  void wrap_kernel(std::string owner, const KernelAround<GroupedLinearKernel>& around);
  const KernelOwners& kernel_owners() const { return kernel_.owners(); }
  std::string computed_by() const override { return kernel_.owners().text(); }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  std::string place() const;

  std::shared_ptr<Parameter> weight_;
  std::shared_ptr<Parameter> bias_;  // null: none
  double bias_factor_ = 1;
  KernelSeam<GroupedLinearKernel> kernel_;
  at::IntArrayRef rows_;  // of the running call
};

}  // namespace titan::nn
