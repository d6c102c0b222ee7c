#include "mixtral.h"

#include <cmath>

#include <titan/nn/embedding.h>
#include <titan/nn/head.h>

#include "transformer_block.h"

namespace titan::mixtral {

using nn::Init;

Mixtral::Mixtral(const MixtralOptions& options, ModelContext context)
    : options_(options), dimensions_(options), context_(context) {}

std::vector<Layer> Mixtral::build() const {
  const MixtralOptions& o = options_;
  const double head_std = 1 / std::sqrt(static_cast<double>(o.dim));
  const Init head_init = Init::truncated_normal(0, head_std, -3 * head_std, 3 * head_std);
  const auto rope = std::make_shared<nn::Rope>(  // one table for all layers
      dimensions_.head_dim, nn::RopeOptions{.theta = o.rope_theta});

  std::vector<Layer> layers;
  // a shared matrix is drawn by the head's rule: it is the head that sets the scale of the logits
  auto embedding = std::make_unique<nn::Embedding>(
      o.vocab_size, o.dim, o.enable_weight_tying ? head_init : Init::normal(0, 1));
  const auto tied_weight = o.enable_weight_tying ? embedding->shared_weight() : nullptr;
  layers.push_back({"tok_embeddings", std::move(embedding), "tok_embeddings", o.dim});

  for (int64_t i = 0; i < o.n_layers; ++i) {
    const Init input_init = Init::truncated_normal(0, 0.02);
    const double depth = static_cast<double>(o.depth_init ? i + 1 : o.n_layers);
    const Init output_init = Init::truncated_normal(0, 0.02 / std::sqrt(2 * depth));
    const std::string name = "layers." + std::to_string(i);
    const nn::RouterOptions router = {.dim = o.dim,
                                      .num_experts = o.num_experts,
                                      .top_k = o.top_k,
                                      .score = nn::RouterScore::softmax,
                                      .normalises = true,
                                      .is_float32 = o.router_in_float32,
                                      .balance_rate = o.load_balance_coeff,
                                      .balance_loss = o.load_balance_loss,
                                      .forces_balance = o.force_load_balance,
                                      .init = output_init};
    layers.push_back({name,
                      std::make_unique<TransformerBlock>(
                          BlockOptions{.attention = {.dim = o.dim,
                                                     .num_heads = o.n_heads,
                                                     .num_kv_heads = dimensions_.num_kv_heads,
                                                     .head_dim = dimensions_.head_dim,
                                                     .input_init = input_init,
                                                     .output_init = output_init},
                                       .moe = {.router = router,
                                               .hidden_dim = o.hidden_dim,
                                               .gate_init = input_init,
                                               .output_init = output_init},
                                       .norm_eps = o.norm_eps},
                          rope),
                      name, o.dim, /*is_block=*/true});
  }

  layers.push_back(
      {"output",
       std::make_unique<nn::OutputHead>(nn::OutputHeadOptions{.dim = o.dim,
                                                              .vocab_size = o.vocab_size,
                                                              .norm_eps = o.norm_eps,
                                                              .init = head_init,
                                                              .tied_weight = tied_weight}),
       ""});
  return layers;
}

Flops Mixtral::flops_per_token(int64_t seq_len) const {
  const double dim = options_.dim, layers = options_.n_layers, vocab = options_.vocab_size;
  const double heads_width = static_cast<double>(options_.n_heads) * dimensions_.head_dim;
  const double kv_width = static_cast<double>(dimensions_.num_kv_heads) * dimensions_.head_dim;
  const double experts = static_cast<double>(options_.top_k) * 3 * dim * options_.hidden_dim;
  const double per_layer =
      2 * dim * heads_width + 2 * dim * kv_width + dim * options_.num_experts + experts + 2 * dim;
  const double matmul_parameters =
      layers * per_layer + dim + vocab * dim;  // without the look-up table
  const double attention = 6 * layers * heads_width * seq_len;
  return {.full_attention = 6 * matmul_parameters + 2 * attention,
          .causal_half = 6 * matmul_parameters + attention};
}

}  // namespace titan::mixtral
