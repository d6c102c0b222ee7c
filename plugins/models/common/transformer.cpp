#include "transformer.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/nn/embedding.h>
#include <titan/nn/head.h>

#include "transformer_block.h"

namespace titan::models {

using nn::Init;

void check_heads(int64_t n_heads, int64_t n_kv_heads) {
  TITAN_CHECK(n_kv_heads <= n_heads && n_heads % n_kv_heads == 0, config,
              "model.n_heads = ", n_heads, " is not a multiple of model.n_kv_heads = ", n_kv_heads);
}

void check_experts(int64_t num_experts, int64_t top_k) {
  TITAN_CHECK(top_k <= num_experts, config, "model.top_k = ", top_k,
              " is above model.num_experts = ", num_experts);
}

std::vector<Layer> build_layers(const Transformer& t) {
  const double head_std = 1 / std::sqrt(static_cast<double>(t.dim));
  const Init head_init = Init::truncated_normal(0, head_std, -3 * head_std, 3 * head_std);
  const auto rope = std::make_shared<nn::Rope>(t.head_dim, t.rope);  // one table for all layers

  std::vector<Layer> layers;
  // a shared matrix is drawn by the head's rule: it is the head that sets the scale of the logits
  auto embedding = std::make_unique<nn::Embedding>(t.vocab_size, t.dim,
                                                   t.is_tied ? head_init : Init::normal(0, 1));
  const auto tied_weight = t.is_tied ? embedding->shared_weight() : nullptr;
  layers.push_back({"tok_embeddings", std::move(embedding), "tok_embeddings", t.dim});

  for (int64_t i = 0; i < t.n_layers; ++i) {
    const Init input_init = Init::truncated_normal(0, 0.02);
    const double depth = static_cast<double>(t.depth_init ? i + 1 : t.n_layers);
    const Init output_init = Init::truncated_normal(0, 0.02 / std::sqrt(2 * depth));
    BlockOptions block{.attention = {.dim = t.dim,
                                     .num_heads = t.n_heads,
                                     .num_kv_heads = t.n_kv_heads,
                                     .head_dim = t.head_dim,
                                     .input_init = input_init,
                                     .output_init = output_init},
                       .norm_eps = t.norm_eps};
    if (t.mixture) {
      block.mixture = {.router = t.mixture->router,
                       .hidden_dim = t.mixture->hidden_dim,
                       .gate_init = input_init,
                       .output_init = output_init};
      block.mixture->router.dim = t.dim;
      block.mixture->router.init = output_init;
    } else {
      block.feed_forward = {.dim = t.dim,
                            .hidden_dim = t.ffn_dim,
                            .gate_init = input_init,
                            .output_init = output_init};
    }
    if (t.normalizes_qk) block.attention.qk_norm_eps = t.norm_eps;
    const std::string name = "layers." + std::to_string(i);
    layers.push_back(
        {name, std::make_unique<TransformerBlock>(block, rope), name, t.dim, /*is_block=*/true});
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

/// Weights of a block's feed-forward that multiply one token.
double feed_forward_weights(const Transformer& t) {
  const double dim = t.dim;
  if (!t.mixture) return 3 * dim * t.ffn_dim;
  const nn::RouterOptions& router = t.mixture->router;
  return dim * router.num_experts +
         3 * dim * static_cast<double>(router.top_k) * t.mixture->hidden_dim;
}

}  // namespace

Flops flops_per_token(const Transformer& t, int64_t seq_len) {
  const double dim = t.dim, layers = t.n_layers, vocab = t.vocab_size;
  const double heads_width = static_cast<double>(t.n_heads) * t.head_dim;
  const double kv_width = static_cast<double>(t.n_kv_heads) * t.head_dim;
  const double norms = 2 * dim + (t.normalizes_qk ? 2.0 * t.head_dim : 0.0);
  const double per_layer =
      2 * dim * heads_width + 2 * dim * kv_width + feed_forward_weights(t) + norms;
  const double matmul_parameters =
      layers * per_layer + dim + vocab * dim;  // without the look-up table
  const double attention = 6 * layers * heads_width * seq_len;
  return {.full_attention = 6 * matmul_parameters + 2 * attention,
          .causal_half = 6 * matmul_parameters + attention};
}

}  // namespace titan::models
