#include <titan/nn/linear.h>

#include <titan/nn/weight_gradients.h>

namespace titan::nn {
namespace {

class PlainLinearKernel final : public LinearKernel {
 public:
  at::Tensor matmul(const at::Tensor& x, Parameter& weight) override { return linear(x, weight); }
};

}  // namespace

LinearKernel::~LinearKernel() = default;

Linear::Linear(int64_t in_features, int64_t out_features, WeightLayout layout, const Init& init)
    : weight_(add_parameter("weight", {out_features, in_features}, init)),
      layout_(layout),
      kernel_(std::make_unique<PlainLinearKernel>()) {}
Linear::~Linear() = default;

void Linear::set_kernel(std::unique_ptr<LinearKernel> kernel) {
  kernel_ = std::move(kernel);
  has_plain_kernel_ = false;
}

at::Tensor Linear::forward(const at::Tensor& x, const Batch&) {
  return kernel_->matmul(x, weight_);
}

}  // namespace titan::nn
