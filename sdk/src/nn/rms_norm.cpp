#include <titan/nn/rms_norm.h>

#include <titan/ops/rms_norm.h>

namespace titan::nn {

RmsNorm::RmsNorm(int64_t dim, double eps)
    : weight_(add_parameter("weight", {dim}, Init::constant(1))), eps_(eps) {}

at::Tensor RmsNorm::forward(const at::Tensor& x, const Batch&) {
  return ops::rms_norm(x, weight_.value(), eps_);
}

}  // namespace titan::nn
