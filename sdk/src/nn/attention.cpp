#include <titan/nn/attention.h>

#include <titan/error.h>

namespace titan::nn {

AttentionInputKernel::~AttentionInputKernel() = default;

/// Put together from the layer's children, whoever computes in them.
class Attention::Composed final : public AttentionInputKernel {
 public:
  explicit Composed(Attention& layer) : layer_(layer) {}
  AttentionInputs project(const at::Tensor& x, const AttentionInputWeights&, Rope& rope,
                          const Batch& batch) override {
    // Sizes come from the projections: tensor parallelism may gather the sequence inside them.
    const auto heads = [&](const at::Tensor& projected) {  // (B, S, n·hd) -> (B, S, n, hd)
      return projected.view({projected.size(0), projected.size(1), -1, layer_.head_dim_});
    };
    at::Tensor q = heads(layer_.wq_(x, batch));
    at::Tensor k = heads(layer_.wk_(x, batch));
    const at::Tensor v = heads(layer_.wv_(x, batch));
    if (layer_.q_norm_) {
      q = (*layer_.q_norm_)(q, batch);
      k = (*layer_.k_norm_)(k, batch);
    }
    auto [q_rotated, k_rotated] = rope.rotate(q, k, batch);
    return {q_rotated, k_rotated, v};
  }

 private:
  Attention& layer_;
};

Attention::Attention(const AttentionOptions& options, std::shared_ptr<Rope> rope)
    : head_dim_(options.head_dim),
      wq_(add_module("wq",
                     std::make_unique<Linear>(options.dim, options.num_heads * options.head_dim,
                                              WeightLayout::column, options.input_init))),
      wk_(add_module("wk",
                     std::make_unique<Linear>(options.dim, options.num_kv_heads * options.head_dim,
                                              WeightLayout::column, options.input_init))),
      wv_(add_module("wv",
                     std::make_unique<Linear>(options.dim, options.num_kv_heads * options.head_dim,
                                              WeightLayout::column, options.input_init))),
      wo_(add_module("wo",
                     std::make_unique<Linear>(options.num_heads * options.head_dim, options.dim,
                                              WeightLayout::row, options.output_init))),
      q_norm_(nullptr),
      k_norm_(nullptr),
      rope_(std::move(rope)),
      inputs_(std::make_unique<Composed>(*this)) {
  if (options.qk_norm_eps) {
    const auto norm = [&] { return std::make_unique<RmsNorm>(head_dim_, *options.qk_norm_eps); };
    q_norm_ = &add_module("q_norm", norm());
    k_norm_ = &add_module("k_norm", norm());
  }
  set_region(Region::gathered_to_partial);
}
Attention::~Attention() = default;

std::string Attention::place() const {
  const std::string& name = wq_.weight().name();  // "layers.0.attention.wq.weight"
  const size_t end = name.rfind(".wq.weight");
  return end == std::string::npos ? "an attention layer" : "'" + name.substr(0, end) + "'";
}

void Attention::set_kernel(std::string taker, std::unique_ptr<AttentionKernel> kernel) {
  check_runs(taker, place());
  core_.set_kernel(std::move(taker), std::move(kernel), place());
}

void Attention::wrap_kernel(std::string taker, const KernelAround<AttentionKernel>& around) {
  check_runs(taker, place());
  core_.wrap_kernel(std::move(taker), around, place());
}

void Attention::set_input_kernel(std::string taker, std::unique_ptr<AttentionInputKernel> kernel) {
  check_runs(taker, place());
  const std::string what = "the projections of " + place();
  TITAN_CHECK(!q_norm_, config, taker, " cannot compute ", what,
              " and their rotation: queries and keys are normalised in between");
  inputs_.takers().check_replaceable(taker, what);
  for (Linear* linear : {&wq_, &wk_, &wv_}) linear->skip_kernel(taker);
  rope_->skip_kernel(taker);
  inputs_.replace(std::move(taker), std::move(kernel), what);
}

std::string Attention::computed_by() const {
  const std::string core = core_.kernel_takers().text(), inputs = inputs_.takers().text();
  if (inputs.empty()) return core;
  return (core.empty() ? "" : core + ", ") + inputs + " in its projections";
}

at::Tensor Attention::forward(const at::Tensor& x, const Batch& batch) {
  const auto [q, k, v] = inputs_->project(x, input_weights(), *rope_, batch);
  const at::Tensor out =  // (B, H, S, hd)
      core_.attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), batch);
  return wo_(out.transpose(1, 2).reshape({q.size(0), q.size(1), -1}), batch);
}

}  // namespace titan::nn
