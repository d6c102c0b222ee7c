// Root mean square normalisation. Zhang and Sennrich, 2019.
#pragma once

#include <titan/nn/module.h>

namespace titan::nn {

/// y = x / sqrt(mean(x²) + eps) · w over the last dimension, in fp32, returned in x's dtype.
/// Parameter "weight" (dim), 1.
class TITAN_API RmsNorm final : public Module {
 public:
  RmsNorm(int64_t dim, double eps);

  Parameter& weight() { return weight_; }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  Parameter& weight_;
  double eps_;
};

}  // namespace titan::nn
