#include <titan/nn/attention.h>

#include <titan/error.h>
#include <titan/nn/attention_rules.h>

namespace titan::nn {

AttentionInputKernel::~AttentionInputKernel() = default;

/// Composed of the layer's children, with the children's kernel owners.
class Attention::Composed final : public AttentionInputKernel {
 public:
  explicit Composed(Attention& layer) : layer_(layer) {}
  AttentionInputs project(const at::Tensor& x, const AttentionInputWeights&, Rope* rope,
                          const Batch& batch) override {
    // Sizes come from the projections: tensor parallelism may gather the sequence inside them.
    const auto heads = [&](const at::Tensor& projected) {  // (B, S, n·hd) -> (B, S, n, hd)
      return projected.view({projected.size(0), projected.size(1), -1, layer_.head_dim_});
    };
    const auto project = [&](Linear& linear, RmsNorm* norm) {
      const at::Tensor projected = linear(x, batch);
      return heads(norm && layer_.norms_span_heads_ ? (*norm)(projected, batch) : projected);
    };
    at::Tensor q = project(layer_.wq_, layer_.q_norm_);
    at::Tensor k = project(layer_.wk_, layer_.k_norm_);
    const at::Tensor v = heads(layer_.wv_(x, batch));
    if (layer_.q_norm_ && !layer_.norms_span_heads_) {
      q = (*layer_.q_norm_)(q, batch);
      k = (*layer_.k_norm_)(k, batch);
    }
    if (!rope) return {q, k, v};
    auto [q_rotated, k_rotated] = rope->rotate(q, k, batch);
    return {q_rotated, k_rotated, v};
  }

 private:
  Attention& layer_;
};

Linear& Attention::add_projection(const char* name, const AttentionOptions& options,
                                  int64_t num_heads) {
  const auto bias = options.has_bias ? std::optional(options.input_init) : std::nullopt;
  return add_module(name, std::make_unique<Linear>(options.dim, num_heads * options.head_dim,
                                                   WeightLayout::column, options.input_init, bias));
}

std::shared_ptr<Parameter> Attention::add_sinks(const AttentionOptions& options) {
  if (!options.sinks_init) return nullptr;
  add_parameter("sinks", {options.num_heads}, *options.sinks_init);
  return shared_parameter("sinks");
}

namespace {

std::shared_ptr<const AttentionRule> rule_of(const AttentionOptions& options,
                                             const std::shared_ptr<Parameter>& sinks) {
  TITAN_CHECK(options.window == 0 || options.chunk == 0, config, "attention has either a window (",
              options.window, ") or chunks (", options.chunk, ")");
  auto rule = options.window > 0  ? windowed_attention(options.window)
              : options.chunk > 0 ? chunked_attention(options.chunk)
                                  : plain_attention();
  return sinks ? with_sinks(std::move(rule), sinks) : rule;
}

/// The fused operations if the rule is the plain one.
AttentionCore core_of(const AttentionOptions& options, const std::shared_ptr<Parameter>& sinks) {
  const bool is_plain = options.window == 0 && options.chunk == 0 && !sinks;
  return is_plain ? AttentionCore() : AttentionCore(rule_of(options, sinks));
}

}  // namespace

Attention::Attention(const AttentionOptions& options, std::shared_ptr<Rope> rope)
    : head_dim_(options.head_dim),
      wq_(add_projection("wq", options, options.num_heads)),
      wk_(add_projection("wk", options, options.num_kv_heads)),
      wv_(add_projection("wv", options, options.num_kv_heads)),
      wo_(add_module("wo",
                     std::make_unique<Linear>(
                         options.num_heads * options.head_dim, options.dim, WeightLayout::row,
                         options.output_init,
                         options.has_bias ? std::optional(options.output_init) : std::nullopt))),
      q_norm_(nullptr),
      k_norm_(nullptr),
      norms_span_heads_(options.qk_norm_eps && options.qk_norm_spans_heads),
      rope_(std::move(rope)),
      sinks_(add_sinks(options)),
      core_(core_of(options, sinks_)),
      inputs_(std::make_unique<Composed>(*this)) {
  if (options.qk_norm_eps) {
    const auto norm = [&](int64_t num_heads) {
      const int64_t width = norms_span_heads_ ? num_heads * head_dim_ : head_dim_;
      return std::make_unique<RmsNorm>(width, *options.qk_norm_eps);
    };
    q_norm_ = &add_module("q_norm", norm(options.num_heads));
    k_norm_ = &add_module("k_norm", norm(options.num_kv_heads));
  }
  set_region(Region::gathered_to_partial);
}
Attention::~Attention() = default;

std::string Attention::place() const {
  const std::string& name = wq_.weight().name();  // "layers.0.attention.wq.weight"
  const size_t end = name.rfind(".wq.weight");
  return end == std::string::npos ? "an attention layer" : "'" + name.substr(0, end) + "'";
}

void Attention::set_kernel(std::string owner, std::unique_ptr<AttentionKernel> kernel) {
  check_runs(owner, place());
  core_.set_kernel(std::move(owner), std::move(kernel), place());
}

void Attention::wrap_kernel(std::string owner, const KernelAround<AttentionKernel>& around) {
  check_runs(owner, place());
  core_.wrap_kernel(std::move(owner), around, place());
}

void Attention::set_input_kernel(std::string owner, std::unique_ptr<AttentionInputKernel> kernel) {
  check_runs(owner, place());
  const std::string what = "the projections of " + place();
  TITAN_CHECK(has_plain_inputs(), config, owner, " cannot compute ", what,
              " and their rotation: a norm or a bias is in between, or there is no rotation");
  inputs_.owners().check_replaceable(owner, what);
  for (Linear* linear : {&wq_, &wk_, &wv_}) linear->skip_kernel(owner);
  rope_->skip_kernel(owner);
  inputs_.replace(std::move(owner), std::move(kernel), what);
}

void Attention::wrap_input_kernel(std::string owner,
                                  const KernelAround<AttentionInputKernel>& around) {
  check_runs(owner, place());
  inputs_.wrap(std::move(owner), around, "the projections of " + place());
}

std::vector<Parameter*> Attention::head_parameters() {
  if (!sinks_) return {};
  return {sinks_.get()};
}

std::vector<RmsNorm*> Attention::head_norms() {
  if (!norms_span_heads_) return {};
  return {q_norm_, k_norm_};
}

std::string Attention::computed_by() const {
  const std::string core = core_.kernel_owners().text(), inputs = inputs_.owners().text();
  if (inputs.empty()) return core;
  return (core.empty() ? "" : core + ", ") + inputs + " in its projections";
}

at::Tensor Attention::forward(const at::Tensor& x, const Batch& batch) {
  const auto [q, k, v] = inputs_->project(x, input_weights(), rope_.get(), batch);
  const at::Tensor out =  // (B, H, S, hd)
      core_.attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), batch);
  return wo_(out.transpose(1, 2).reshape({q.size(0), q.size(1), -1}), batch);
}

}  // namespace titan::nn
