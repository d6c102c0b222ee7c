#include <titan/models/transformer.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/models/transformer_block.h>
#include <titan/nn/embedding.h>
#include <titan/nn/head.h>

namespace titan::models {

using nn::Init;

HeadSizes head_sizes(int64_t dim, int64_t n_heads, std::optional<int64_t> n_kv_heads,
                     std::optional<int64_t> head_dim) {
  const HeadSizes sizes = {.n_kv_heads = n_kv_heads.value_or(n_heads),
                           .head_dim = head_dim.value_or(dim / n_heads)};
  TITAN_CHECK(head_dim || dim % n_heads == 0, config, "model.dim = ", dim,
              " is not divisible by model.n_heads = ", n_heads,
              "; set model.head_dim to choose the width of a head");
  TITAN_CHECK(sizes.head_dim % 2 == 0, config,
              "model.head_dim must be even for rotary positions, got ", sizes.head_dim,
              head_dim ? "" : " (= dim / n_heads)");
  TITAN_CHECK(sizes.n_kv_heads <= n_heads && n_heads % sizes.n_kv_heads == 0, config,
              "model.n_heads = ", n_heads,
              " is not a multiple of model.n_kv_heads = ", sizes.n_kv_heads);
  return sizes;
}

void check_experts(int64_t num_experts, int64_t top_k) {
  TITAN_CHECK(top_k <= num_experts, config, "model.top_k = ", top_k,
              " is above model.num_experts = ", num_experts);
}

namespace {

/// How a layer draws its weights: those that read the residual stream, and those that write to it
/// (torchtitan draws w3 and gates by the latter, too).
struct LayerInits {
  Init input, output;
};

LayerInits inits_of(const Transformer& t, int64_t layer) {
  const double depth = static_cast<double>(t.depth_init ? layer + 1 : t.n_layers);
  return {.input = Init::truncated_normal(0, 0.02),
          .output = Init::truncated_normal(0, 0.02 / std::sqrt(2 * depth))};
}

BlockOptions block_of(const Transformer& t, int64_t layer) {
  const LayerInits inits = inits_of(t, layer);
  BlockOptions block{.dim = t.dim,
                     .attention = {.dim = t.dim,
                                   .num_heads = t.n_heads,
                                   .num_kv_heads = t.n_kv_heads,
                                   .head_dim = t.head_dim,
                                   .input_init = inits.input,
                                   .output_init = inits.output},
                     .norm_eps = t.norm_eps,
                     .norms_after = t.norms_after};
  if (t.is_mixture(layer)) {
    block.mixture = t.mixture;
    block.mixture->gate_init = inits.input;
    block.mixture->output_init = inits.output;
    block.mixture->router.dim = t.dim;
    block.mixture->router.init = inits.output;
  } else {
    block.feed_forward = {.dim = t.dim,
                          .hidden_dim = t.ffn_dim,
                          .gate_init = inits.input,
                          .output_init = inits.output};
  }
  if (t.qk_norm != QkNorm::none) block.attention.qk_norm_eps = t.norm_eps;
  block.attention.qk_norm_spans_heads = t.qk_norm == QkNorm::of_projections;
  if (t.adapt) t.adapt(layer, block);
  return block;
}

}  // namespace

std::vector<Layer> build_layers(const Transformer& t) {
  const double head_std = 1 / std::sqrt(static_cast<double>(t.dim));
  const Init head_init = Init::truncated_normal(0, head_std, -3 * head_std, 3 * head_std);
  const auto rope = std::make_shared<nn::Rope>(t.head_dim, t.rope);  // one table for all layers

  std::vector<Layer> layers;
  // a shared matrix is drawn by the head's rule, which sets the scale of the logits
  auto embedding = std::make_unique<nn::Embedding>(t.vocab_size, t.dim,
                                                   t.is_tied ? head_init : Init::normal(0, 1));
  const auto tied_weight = t.is_tied ? embedding->shared_weight() : nullptr;
  layers.push_back({"tok_embeddings", std::move(embedding), "tok_embeddings", t.dim});

  for (int64_t i = 0; i < t.n_layers; ++i) {
    const std::string name = "layers." + std::to_string(i);
    layers.push_back({name, std::make_unique<TransformerBlock>(block_of(t, i), rope), name, t.dim,
                      /*is_block=*/true});
  }

  layers.push_back(
      {"output",
       std::make_unique<nn::OutputHead>(nn::OutputHeadOptions{.dim = t.dim,
                                                              .vocab_size = t.vocab_size,
                                                              .norm_eps = t.norm_eps,
                                                              .init = head_init,
                                                              .tied_weight = tied_weight}),
       ""});
  return layers;
}

namespace {

/// Weights of a block's feed-forward that one token uses.
double feed_forward_weights(const Transformer& t, int64_t layer) {
  const double dim = t.dim;
  if (!t.is_mixture(layer)) return 3 * dim * t.ffn_dim;
  const Mixture& mixture = *t.mixture;
  const double hidden = mixture.hidden_dim, experts = mixture.router.num_experts;
  const double of_expert = 3 * dim * hidden + (mixture.has_biases ? 2 * hidden + dim : 0.0);
  return dim * experts + (mixture.router.has_bias ? experts : 0.0) +
         static_cast<double>(mixture.router.top_k) * of_expert +
         3 * dim * hidden * static_cast<double>(mixture.num_shared_experts);
}

AttentionCost attention_cost(const Transformer& t) {
  if (t.attention_cost) return *t.attention_cost;
  const double dim = t.dim, heads_width = static_cast<double>(t.n_heads) * t.head_dim;
  const double kv_width = static_cast<double>(t.n_kv_heads) * t.head_dim;
  const double norms = t.qk_norm == QkNorm::of_heads         ? 2.0 * t.head_dim
                       : t.qk_norm == QkNorm::of_projections ? heads_width + kv_width
                                                             : 0.0;
  return {.weights = 2 * dim * heads_width + 2 * dim * kv_width + norms,
          .pair_width = 2 * heads_width};
}

}  // namespace

Flops flops_per_token(const Transformer& t, int64_t seq_len) {
  const double dim = t.dim, layers = t.n_layers, vocab = t.vocab_size;
  const AttentionCost attention = attention_cost(t);
  double weights = layers * (attention.weights + 2 * dim) + dim + vocab * dim;  // no look-up table
  for (int64_t layer = 0; layer < t.n_layers; ++layer) weights += feed_forward_weights(t, layer);
  const double pairs = 6 * layers * attention.pair_width * static_cast<double>(seq_len);
  return {.full_attention = 6 * weights + pairs, .causal_half = 6 * weights + pairs / 2};
}

}  // namespace titan::models
