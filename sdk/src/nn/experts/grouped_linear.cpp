#include <titan/nn/grouped_linear.h>

#include <utility>

#include <titan/ops/grouped_linear.h>

namespace titan::nn {
namespace {

class PlainGroupedLinearKernel final : public GroupedLinearKernel {
 public:
  at::Tensor matmul(const at::Tensor& x, Parameter& weight, at::IntArrayRef rows) override {
    return ops::grouped_linear(x, weight.value(), rows);
  }
};

}  // namespace

GroupedLinearKernel::~GroupedLinearKernel() = default;

GroupedLinear::GroupedLinear(int64_t num_groups, int64_t in_features, int64_t out_features,
                             const Init& init)
    : kernel_(std::make_unique<PlainGroupedLinearKernel>()) {
  add_parameter("weight", {num_groups, out_features, in_features}, init);
  weight_ = shared_parameter("weight");
}

GroupedLinear::GroupedLinear(std::shared_ptr<Parameter> weight, std::shared_ptr<Parameter> bias)
    : weight_(std::move(weight)),
      bias_(std::move(bias)),
      kernel_(std::make_unique<PlainGroupedLinearKernel>()) {
  borrow_parameter(weight_);
  if (bias_) borrow_parameter(bias_);
}

GroupedLinear::~GroupedLinear() = default;

at::Tensor GroupedLinear::operator()(const at::Tensor& x, at::IntArrayRef rows) {
  const at::IntArrayRef outer = std::exchange(rows_, rows);
  at::Tensor out = Module::operator()(x, Batch());
  rows_ = outer;
  return out;
}

std::string GroupedLinear::place() const {
  return weight_->name().empty() ? "a grouped linear layer" : "'" + weight_->name() + "'";
}

void GroupedLinear::set_kernel(std::string owner, std::unique_ptr<GroupedLinearKernel> kernel) {
  check_runs(owner, place());
  kernel_.replace(std::move(owner), std::move(kernel), place());
}

void GroupedLinear::wrap_kernel(std::string owner,
                                const KernelAround<GroupedLinearKernel>& around) {
  check_runs(owner, place());
  kernel_.wrap(std::move(owner), around, place());
}

at::Tensor GroupedLinear::forward(const at::Tensor& x, const Batch&) {
  const at::Tensor y = kernel_->matmul(x, *weight_, rows_);
  return bias_ ? ops::add_group_bias(y, bias_->value(), rows_, bias_factor_) : y;
}

}  // namespace titan::nn
