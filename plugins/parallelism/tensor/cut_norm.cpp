#include "cut_norm.h"

#include <ATen/TensorOperators.h>
#include <titan/dist/collectives.h>

namespace titan::tensor_parallel {
namespace {

class CutNorm final : public nn::RmsNormKernel {
 public:
  explicit CutNorm(const dist::Group& group) : group_(group) {}

  at::Tensor normalize(const at::Tensor& x, nn::Parameter& weight, double eps) override {
    const at::ScalarType precise = c10::promoteTypes(x.scalar_type(), at::kFloat);
    const at::Tensor wide = x.to(precise);
    const at::Tensor squares = dist::all_reduce((wide * wide).sum(-1, /*keepdim=*/true), group_);
    const auto dim = static_cast<double>(weight.global_shape()[0]);
    const at::Tensor scale = (squares / dim + eps).rsqrt();
    return (wide * scale * weight.value().to(precise)).to(x.scalar_type());
  }

 private:
  dist::Group group_;
};

}  // namespace

std::unique_ptr<nn::RmsNormKernel> make_cut_norm(const dist::Group& group) {
  return std::make_unique<CutNorm>(group);
}

}  // namespace titan::tensor_parallel
