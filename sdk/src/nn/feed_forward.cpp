#include <titan/nn/feed_forward.h>

#include <titan/ops/swiglu.h>

namespace titan::nn {
namespace {

class PlainSwigluKernel final : public SwigluKernel {
 public:
  at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) override {
    return ops::swiglu(gate, up);
  }
};

}  // namespace

SwigluKernel::~SwigluKernel() = default;
FeedForwardKernel::~FeedForwardKernel() = default;

/// The layer composed of its children, with the children's kernel owners.
class FeedForward::Composed final : public FeedForwardKernel {
 public:
  explicit Composed(FeedForward& layer) : layer_(layer) {}
  at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights&,
                          const Batch& batch) override {
    const at::Tensor gate = layer_.w1_(x, batch);  // in this order on every compiler
    return layer_.w2_(layer_.swiglu_->swiglu(gate, layer_.w3_(x, batch)), batch);
  }

 private:
  FeedForward& layer_;
};

FeedForward::FeedForward(const FeedForwardOptions& options)
    : w1_(add_module("w1", std::make_unique<Linear>(options.dim, options.hidden_dim,
                                                    WeightLayout::column, options.gate_init))),
      w2_(add_module("w2", std::make_unique<Linear>(options.hidden_dim, options.dim,
                                                    WeightLayout::row, options.output_init))),
      w3_(add_module("w3", std::make_unique<Linear>(options.dim, options.hidden_dim,
                                                    WeightLayout::column, options.output_init))),
      swiglu_(std::make_unique<PlainSwigluKernel>()),
      kernel_(std::make_unique<Composed>(*this)) {
  set_region(Region::gathered_to_partial);
}
FeedForward::~FeedForward() = default;

std::string FeedForward::place() const {
  const std::string& name = w1_.weight().name();  // "layers.0.feed_forward.w1.weight"
  const size_t end = name.rfind(".w1.weight");
  return end == std::string::npos ? "a feed-forward layer" : "'" + name.substr(0, end) + "'";
}

void FeedForward::set_kernel(std::string owner, std::unique_ptr<FeedForwardKernel> kernel) {
  check_runs(owner, place());
  kernel_.owners().check_replaceable(owner, place());
  swiglu_.skip(owner, "the gate of " + place());
  for (Linear* linear : {&w1_, &w2_, &w3_}) linear->skip_kernel(owner);
  kernel_.replace(std::move(owner), std::move(kernel), place());
}

void FeedForward::wrap_kernel(std::string owner, const KernelAround<FeedForwardKernel>& around) {
  check_runs(owner, place());
  kernel_.wrap(std::move(owner), around, place());
}

void FeedForward::set_swiglu_kernel(std::string owner, std::unique_ptr<SwigluKernel> kernel) {
  check_runs(owner, place());
  swiglu_.replace(std::move(owner), std::move(kernel), "the gate of " + place());
}

void FeedForward::wrap_swiglu_kernel(std::string owner, const KernelAround<SwigluKernel>& around) {
  check_runs(owner, place());
  swiglu_.wrap(std::move(owner), around, "the gate of " + place());
}

std::string FeedForward::computed_by() const {
  const std::string whole = kernel_.owners().text(), gate = swiglu_.owners().text();
  if (gate.empty() || swiglu_.owners().is_skipped) return whole;
  return (whole.empty() ? "" : whole + ", ") + gate + " in its gate";
}

at::Tensor FeedForward::forward(const at::Tensor& x, const Batch& batch) {
  return kernel_->feed_forward(x, weights(), batch);
}

}  // namespace titan::nn
