// Root mean square normalisation. Zhang and Sennrich, 2019.
#pragma once

#include <memory>

#include <titan/nn/kernel_seam.h>
#include <titan/nn/module.h>

namespace titan::nn {

/// Computes RmsNorm; a plugin can replace it by a fused kernel.
class TITAN_API RmsNormKernel {
 public:
  virtual ~RmsNormKernel();
  /// x (..., dim), weight (dim) -> (..., dim) in x's dtype. Differentiable in both.
  virtual at::Tensor normalize(const at::Tensor& x, Parameter& weight, double eps) = 0;
  /// x + delta, both (..., dim). The caller normalizes the sum next, unless a wrapper intervenes. A
  /// fused kernel computes both here and returns the normalized sum from that call. Differentiable
  /// in both.
  virtual at::Tensor add(const at::Tensor& x, const at::Tensor& delta, Parameter& weight,
                         double eps);
};

/// y = x / sqrt(mean(x²) + eps) · w over the last dimension, in fp32, returned in x's dtype.
/// Parameter "weight" (dim), initially 1.
class TITAN_API RmsNorm final : public Module {
 public:
  RmsNorm(int64_t dim, double eps);
  ~RmsNorm() override;

  Parameter& weight() { return weight_; }
  double eps() const { return eps_; }
  /// x + delta, for a layer that runs this module on the sum next. Records the same autograd graph
  /// as the two separate operations.
  at::Tensor add(const at::Tensor& x, const at::Tensor& delta) {
    return kernel_->add(x, delta, weight_, eps_);
  }
  /// As Linear::set_kernel and wrap_kernel.
  void set_kernel(std::string owner, std::unique_ptr<RmsNormKernel> kernel);
  void wrap_kernel(std::string owner, const KernelAround<RmsNormKernel>& around);
  const KernelOwners& kernel_owners() const { return kernel_.owners(); }
  std::string computed_by() const override { return kernel_.owners().text(); }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  std::string place() const;

  Parameter& weight_;
  double eps_;
  KernelSeam<RmsNormKernel> kernel_;
};

}  // namespace titan::nn
