#include <titan/nn/rms_norm.h>

#include <titan/ops/rms_norm.h>

namespace titan::nn {
namespace {

class PlainRmsNormKernel final : public RmsNormKernel {
 public:
  at::Tensor normalize(const at::Tensor& x, Parameter& weight, double eps) override {
    return ops::rms_norm(x, weight.value(), eps);
  }
};

}  // namespace

RmsNormKernel::~RmsNormKernel() = default;

at::Tensor RmsNormKernel::add(const at::Tensor& x, const at::Tensor& delta, Parameter&, double) {
  return x + delta;
}

RmsNorm::RmsNorm(int64_t dim, double eps)
    : weight_(add_parameter("weight", {dim}, Init::constant(1))),
      eps_(eps),
      kernel_(std::make_unique<PlainRmsNormKernel>()) {}
RmsNorm::~RmsNorm() = default;

std::string RmsNorm::place() const {
  const std::string& name = weight_.name();
  return name.empty() ? "a normalisation" : "'" + name.substr(0, name.rfind('.')) + "'";
}

void RmsNorm::set_kernel(std::string owner, std::unique_ptr<RmsNormKernel> kernel) {
  check_runs(owner, place());
  kernel_.replace(std::move(owner), std::move(kernel), place());
}

void RmsNorm::wrap_kernel(std::string owner, const KernelAround<RmsNormKernel>& around) {
  check_runs(owner, place());
  kernel_.wrap(std::move(owner), around, place());
}

at::Tensor RmsNorm::forward(const at::Tensor& x, const Batch&) {
  return kernel_->normalize(x, weight_, eps_);
}

}  // namespace titan::nn
