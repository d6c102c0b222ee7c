// A Llama whose best learning rate does not depend on its width: the maximal update parametrisation
// for Adam. Yang et al., 2022 (arXiv:2203.03466), table 8. The learning rate of hidden matrices is
// lr * base_dim / dim, which an [optimizer.groups] of the recipe sets.
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <titan/error.h>
#include <titan/models/shared_options.h>
#include <titan/models/transformer_block.h>
#include <titan/nn/head.h>
#include <titan/plugin.h>

namespace mup {

namespace models = titan::models;
namespace nn = titan::nn;

struct Options {
  int64_t dim = 64;
  int64_t n_layers = 2;
  int64_t n_heads = 4;
  std::optional<int64_t> n_kv_heads;  // unset: n_heads
  std::optional<int64_t> head_dim;    // unset: dim / n_heads
  std::optional<int64_t> hidden_dim;  // unset: 3 dim
  int64_t vocab_size = 2048;
  double norm_eps = 1e-5;
  double rope_theta = 500000;
  int64_t max_position_embeddings = 4096;
  bool depth_init = true;
  models::AttentionType attn_type = models::AttentionType::sdpa;
  std::optional<int64_t> base_dim;       // unset: the standard parametrisation
  std::optional<int64_t> base_head_dim;  // unset: base_dim / n_heads
};

/// Multiplies the queries: scores become q·k sqrt(base_head_dim) / head_dim.
class ScaledQueries final : public nn::AttentionInputKernel {
 public:
  ScaledQueries(std::unique_ptr<nn::AttentionInputKernel> inner, double factor)
      : inner_(std::move(inner)), factor_(factor) {}

  nn::AttentionInputs project(const at::Tensor& x, const nn::AttentionInputWeights& weights,
                              nn::Rope* rope, const titan::Batch& batch) override {
    nn::AttentionInputs inputs = inner_->project(x, weights, rope, batch);
    inputs.q = inputs.q * factor_;
    return inputs;
  }

 private:
  std::unique_ptr<nn::AttentionInputKernel> inner_;
  double factor_;
};

void narrow(nn::Init& init, double factor) {
  init.std *= factor;
}

class Mup final : public titan::Model {
 public:
  Mup(const Options& options, titan::ModelContext context)
      : o_(options), network_(models::shared_network(options, context)) {
    network_.ffn_dim = o_.hidden_dim.value_or(3 * o_.dim);
    if (!o_.base_dim) return;
    TITAN_CHECK(o_.base_head_dim || *o_.base_dim % o_.n_heads == 0, config,
                "model.base_dim = ", *o_.base_dim, " is not divisible by model.n_heads = ",
                o_.n_heads, "; set model.base_head_dim");
    const double width = static_cast<double>(o_.dim) / static_cast<double>(*o_.base_dim);
    const auto base_head = static_cast<double>(o_.base_head_dim.value_or(*o_.base_dim / o_.n_heads));
    const double queries = std::sqrt(base_head / static_cast<double>(network_.head_dim));
    network_.adapt = [width, queries](int64_t, models::BlockOptions& block) {
      for (nn::Init* init : {&block.attention.input_init, &block.attention.output_init,
                             &block.feed_forward.gate_init, &block.feed_forward.output_init})
        narrow(*init, 1 / std::sqrt(width));
      if (queries != 1)
        block.on_attention = [queries](nn::Attention& attention) {
          attention.wrap_input_kernel("maintainers/mup", [queries](auto inner) {
            return std::make_unique<ScaledQueries>(std::move(inner), queries);
          });
        };
    };
  }

  std::vector<titan::Layer> build() const override {
    std::vector<titan::Layer> layers = models::build_layers(network_);
    if (!o_.base_dim) return layers;
    const double std = 1 / std::sqrt(static_cast<double>(*o_.base_dim));
    auto head = std::make_unique<nn::OutputHead>(
        nn::OutputHeadOptions{.dim = o_.dim,
                              .vocab_size = o_.vocab_size,
                              .norm_eps = o_.norm_eps,
                              .init = nn::Init::truncated_normal(0, std, -3 * std, 3 * std)});
    const double multiplier = static_cast<double>(*o_.base_dim) / static_cast<double>(o_.dim);
    if (multiplier != 1)
      head->norm().wrap([multiplier](const at::Tensor& x, const titan::Batch& batch,
                                     const nn::Next& norm) { return norm(x, batch) * multiplier; });
    layers.back().module = std::move(head);
    return layers;
  }

  titan::Flops flops_per_token(int64_t seq_len) const override {
    return models::flops_per_token(network_, seq_len);
  }
  bool isolates_documents() const override { return network_.isolates_documents; }
  int64_t vocab_size() const override { return network_.vocab_size; }

 private:
  Options o_;
  models::Transformer network_;
};

void declare_options(titan::ComponentBuilder<Mup>& builder) {
  auto shared = models::shared_options<Options>(builder);
  shared.sizes().vocab_size().norm_eps().rope_theta().max_position_embeddings().depth_init().attn_type();
  builder.option("hidden_dim", &Options::hidden_dim, "Width of the feed-forward; unset = 3 dim")
      .at_least(1)
      .option("base_dim", &Options::base_dim,
              "Width at which the learning rate was tuned; unset: the standard parametrisation")
      .at_least(1)
      .option("base_head_dim", &Options::base_head_dim,
              "Width of one head of that model; unset = base_dim / n_heads")
      .at_least(1);
}

}  // namespace mup

TITAN_PLUGIN(plugin) {
  plugin.add<mup::Mup>("maintainers/mup", "Llama in the maximal update parametrisation.")
      .options(mup::declare_options);
  plugin.add_flavor("maintainers/mup", "debugmodel", "0.4 million parameters, the base of the sweep",
                    {{"dim", 64}});
}
