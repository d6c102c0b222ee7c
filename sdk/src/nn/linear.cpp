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

Linear::Linear(int64_t in_features, int64_t out_features, WeightLayout layout, const Init& init,
               const std::optional<Init>& bias_init)
    : weight_(add_parameter("weight", {out_features, in_features}, init)),
      bias_(bias_init ? &add_parameter("bias", {out_features}, *bias_init) : nullptr),
      layout_(layout),
      kernel_(std::make_unique<PlainLinearKernel>()) {}
Linear::~Linear() = default;

std::string Linear::place() const {
  const std::string& name = weight_.name();
  return name.empty() ? "a linear layer" : "'" + name.substr(0, name.rfind('.')) + "'";
}

void Linear::set_kernel(std::string owner, std::unique_ptr<LinearKernel> kernel) {
  check_runs(owner, place());
  kernel_.replace(std::move(owner), std::move(kernel), place());
}

void Linear::wrap_kernel(std::string owner, const KernelAround<LinearKernel>& around) {
  check_runs(owner, place());
  kernel_.wrap(std::move(owner), around, place());
}

void Linear::skip_kernel(std::string owner) {
  check_runs(owner, place());
  kernel_.skip(std::move(owner), place());
}

at::Tensor Linear::forward(const at::Tensor& x, const Batch& batch) {
  const at::Tensor y = kernel_->matmul(x, weight_);
  if (!bias_) return y;
  const int64_t parts = layout_ == WeightLayout::row ? batch.copies.num_ranks : 1;
  return y + (parts == 1 ? bias_->value() : bias_->value() / parts);
}

}  // namespace titan::nn
