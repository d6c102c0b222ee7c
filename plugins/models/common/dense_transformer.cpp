#include "dense_transformer.h"

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

std::vector<Layer> build_layers(const DenseTransformer& t) {
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
                       .feed_forward = {.dim = t.dim,
                                        .hidden_dim = t.ffn_dim,
                                        .gate_init = input_init,
                                        .output_init = output_init},
                       .norm_eps = t.norm_eps};
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

Flops flops_per_token(const DenseTransformer& t, int64_t seq_len) {
  const double dim = t.dim, layers = t.n_layers, vocab = t.vocab_size;
  const double heads_width = static_cast<double>(t.n_heads) * t.head_dim;
  const double kv_width = static_cast<double>(t.n_kv_heads) * t.head_dim;
  const double norms = 2 * dim + (t.normalizes_qk ? 2.0 * t.head_dim : 0.0);
  const double per_layer = 2 * dim * heads_width + 2 * dim * kv_width + 3 * dim * t.ffn_dim + norms;
  const double matmul_parameters =
      layers * per_layer + dim + vocab * dim;  // without the look-up table
  const double attention = 6 * layers * heads_width * seq_len;
  return {.full_attention = 6 * matmul_parameters + 2 * attention,
          .causal_half = 6 * matmul_parameters + attention};
}

}  // namespace titan::models
