// A Llama with differential attention: the difference of two softmaxes weights the values. Ye et al.,
// Differential Transformer, 2024 (arXiv:2410.05258).
#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <titan/models/shared_options.h>
#include <titan/models/transformer_model.h>
#include <titan/nn/attention_layer.h>
#include <titan/plugin.h>

namespace differential {

namespace models = titan::models;
namespace nn = titan::nn;
using at::Tensor;

struct Options {
  int64_t dim = 128;
  int64_t n_layers = 4;
  int64_t n_heads = 4;  // of softmaxes: each head of the output uses two
  std::optional<int64_t> n_kv_heads;
  std::optional<int64_t> head_dim;
  int64_t multiple_of = 128;  // as in Llama 3, so that both have the same feed-forward
  int64_t vocab_size = 2048;
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  int64_t max_position_embeddings = 4096;
  bool depth_init = false;
  bool enable_weight_tying = false;
  models::AttentionType attn_type = models::AttentionType::sdpa;
};

/// (softmax(q1 k1ᵀ) - λ softmax(q2 k2ᵀ)) v for each pair of neighbouring heads, normalised per pair.
///
/// The core computes both softmaxes as heads of their own, whose values are twice as wide and equal
/// within a pair. Rows of all projections are ordered by pair, so tensor parallelism may cut them.
/// λ = exp(λq1 · λk1) - exp(λq2 · λk2) + λ_init; all heads share its vectors.
class Attention final : public nn::Module, public nn::AttentionLayer {
 public:
  Attention(const nn::AttentionOptions& o, double eps, int64_t layer, std::shared_ptr<nn::Rope> rope)
      : head_dim_(o.head_dim),
        lambda_init_(0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(layer))),
        wq_(project("wq", o.dim, o.num_heads * o.head_dim, nn::WeightLayout::column, o.input_init)),
        wk_(project("wk", o.dim, o.num_kv_heads * o.head_dim, nn::WeightLayout::column, o.input_init)),
        wv_(project("wv", o.dim, o.num_kv_heads * o.head_dim, nn::WeightLayout::column, o.input_init)),
        wo_(project("wo", o.num_heads * o.head_dim, o.dim, nn::WeightLayout::row, o.output_init)),
        q1_(vector("lambda_q1")),
        k1_(vector("lambda_k1")),
        q2_(vector("lambda_q2")),
        k2_(vector("lambda_k2")),
        norm_(add_module("norm", std::make_unique<nn::RmsNorm>(2 * o.head_dim, eps))),
        rope_(std::move(rope)) {
    set_region(nn::Region::gathered_to_partial);
  }
  nn::AttentionCore& core() override { return core_; }
  int64_t num_heads() const override { return wq_.weight().global_shape()[0] / head_dim_; }
  int64_t num_kv_heads() const override { return wk_.weight().global_shape()[0] / head_dim_; }

 protected:
  Tensor forward(const Tensor& x, const titan::Batch& batch) override {
    const auto heads = [](const Tensor& projected, int64_t width) {  // (B, S, heads, width)
      return projected.unflatten(2, {-1, width});
    };
    const auto [q, k] =
        rope_->rotate(heads(wq_(x, batch), head_dim_), heads(wk_(x, batch), head_dim_), batch);
    const Tensor v = heads(wv_(x, batch), 2 * head_dim_).repeat_interleave(2, 2);
    const Tensor both =
        core_.attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), batch);
    const auto pair = both.transpose(1, 2).unflatten(2, {-1, 2}).unbind(3);  // (B, S, pairs, 2 hd)
    const Tensor lambda = dot(q1_, k1_).exp() - dot(q2_, k2_).exp() + lambda_init_;
    const Tensor difference = pair[0] - lambda.to(both.scalar_type()) * pair[1];
    const Tensor out = norm_(difference, batch) * (1 - lambda_init_);
    return wo_(out.flatten(2), batch);
  }

 private:
  nn::Linear& project(const char* name, int64_t in, int64_t out, nn::WeightLayout layout,
                      const nn::Init& init) {
    return add_module(name, std::make_unique<nn::Linear>(in, out, layout, init));
  }
  nn::Parameter& vector(const char* name) {
    return add_parameter(name, {head_dim_}, nn::Init::normal(0, 0.1));
  }
  static Tensor dot(const nn::Parameter& a, const nn::Parameter& b) {
    const at::ScalarType precise = c10::promoteTypes(a.value().scalar_type(), at::kFloat);
    return (a.value().to(precise) * b.value().to(precise)).sum();
  }

  int64_t head_dim_;
  double lambda_init_;
  nn::Linear &wq_, &wk_, &wv_, &wo_;
  nn::Parameter &q1_, &k1_, &q2_, &k2_;
  nn::RmsNorm& norm_;
  std::shared_ptr<nn::Rope> rope_;  // one table for all layers
  nn::AttentionCore core_;
};

models::Transformer network_of(const Options& o, const titan::ModelContext& context) {
  models::Transformer network = models::shared_network(o, context);
  TITAN_CHECK(network.n_heads % 2 == 0 && network.n_kv_heads % 2 == 0, config,
              "differential attention pairs heads: model.n_heads and model.n_kv_heads must be even, "
              "got ",
              network.n_heads, " and ", network.n_kv_heads);
  const int64_t width = 2 * (4 * o.dim) / 3;
  network.ffn_dim = (width + o.multiple_of - 1) / o.multiple_of * o.multiple_of;
  network.adapt = [](int64_t layer, models::BlockOptions& block) {
    block.make_attention = [options = block.attention, eps = block.norm_eps,
                            layer](std::shared_ptr<nn::Rope> rope) {
      return std::make_unique<Attention>(options, eps, layer, std::move(rope));
    };
  };
  const double heads = static_cast<double>(network.n_heads * network.head_dim),
               kv = static_cast<double>(network.n_kv_heads * network.head_dim);
  network.attention_cost = models::AttentionCost{
      .weights = 2.0 * static_cast<double>(o.dim) * (heads + kv) + 6.0 * static_cast<double>(network.head_dim),
      .pair_width = 3 * heads};  // keys of width hd, values of width 2 hd
  return network;
}

models::Exchange exchange_of(const Options&, const models::Transformer&, const titan::Value&) {
  return {.weights = {.has_hugging_face = false}};
}

using Differential = models::TransformerModel<Options, network_of, exchange_of>;

void declare_options(titan::ComponentBuilder<Differential>& builder) {
  auto shared = models::shared_options<Options>(builder);
  shared.sizes();
  builder
      .option("multiple_of", &Options::multiple_of,
              "The feed-forward width, 8/3 of dim, is rounded up to a multiple of this")
      .at_least(1);
  shared.vocab_size()
      .norm_eps()
      .rope_theta()
      .max_position_embeddings()
      .depth_init()
      .enable_weight_tying()
      .attn_type();
}

}  // namespace differential

TITAN_PLUGIN(plugin) {
  plugin.add<differential::Differential>("maintainers/differential",
                                         "A Llama with differential attention.")
      .options(differential::declare_options);
  plugin.add_flavor("maintainers/differential", "debugmodel", "1.4 million parameters",
                    {{"dim", 128}});
}
