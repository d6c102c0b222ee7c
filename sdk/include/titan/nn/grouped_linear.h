// Several linear layers in one, of which each row of the input meets one: the experts of a mixture.
// Its kernel can be swapped (float8, a fused grouped product), as that of Linear.
#pragma once

#include <memory>
#include <string>

#include <titan/nn/kernel_seam.h>
#include <titan/nn/module.h>

namespace titan::nn {

/// Computes what GroupedLinear does; converters swap it or go around it.
class TITAN_API GroupedLinearKernel {
 public:
  virtual ~GroupedLinearKernel();
  /// x (N, in) sorted by group, weight (G, out, in), rows of each group -> (N, out). Differentiable
  /// in x and weight.
  virtual at::Tensor matmul(const at::Tensor& x, Parameter& weight, at::IntArrayRef rows) = 0;
};

/// x (N, in) -> (N, out) by ops::grouped_linear: the first rows meet the weight of the first group
/// that this rank holds, and so on; plus each group's bias, where there are any.
class TITAN_API GroupedLinear final : public Module {
 public:
  /// Parameter "weight" (num_groups, out, in), no bias.
  GroupedLinear(int64_t num_groups, int64_t in_features, int64_t out_features, const Init& init);
  /// `weight` (num_groups, out, in) and `bias` (num_groups, out), null where there is none, belong
  /// to the layer that this one is a part of, which names them.
  explicit GroupedLinear(std::shared_ptr<Parameter> weight,
                         std::shared_ptr<Parameter> bias = nullptr);
  ~GroupedLinear() override;

  /// `rows`: how many rows of x each group has; they add up to N. Runs through what goes around
  /// this layer, as every call of a module.
  at::Tensor operator()(const at::Tensor& x, at::IntArrayRef rows);

  Parameter& weight() { return *weight_; }
  /// Null: none.
  Parameter* bias() const { return bias_.get(); }
  /// [before anything runs] The bias counts so much: where each of n ranks gives a part of a sum,
  /// 1 / n.
  void scale_bias(double factor) { bias_factor_ = factor; }

  /// As those of Linear.
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
  at::IntArrayRef rows_;  // of the call that is running
};

}  // namespace titan::nn
