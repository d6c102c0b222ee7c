// Options of Llama models, which [model] may set and flavors preset.
#pragma once

#include <cstdint>
#include <optional>

#include <titan/models/shared_options.h>
#include <titan/models/transformer_model.h>

namespace titan::llama {

using models::AttentionType;
using models::RopeScaling;

struct LlamaOptions {
  int64_t dim = 4096;
  int64_t n_layers = 32;
  int64_t n_heads = 32;
  std::optional<int64_t> n_kv_heads;  // unset: n_heads
  std::optional<int64_t> head_dim;    // unset: dim / n_heads
  int64_t vocab_size = 128256;
  int64_t multiple_of = 256;  // the feed-forward width is a multiple of this
  std::optional<double> ffn_dim_multiplier;
  double norm_eps = 1e-5;
  double rope_theta = 500000;
  RopeScaling rope_scaling;
  int64_t max_position_embeddings = 131072;  // context length of the weights, for config.json
  bool depth_init = true;  // initialize output projections with a smaller std in deeper layers
  bool enable_weight_tying = false;
  AttentionType attn_type = AttentionType::sdpa;
};

models::Transformer network_of(const LlamaOptions& options, const ModelContext& context);
models::Exchange exchange_of(const LlamaOptions& options, const models::Transformer& network,
                             const Value& theirs);

/// Llama 2, 3, 3.1 and 3.2: one network in many sizes. Touvron et al., 2023; Grattafiori et al.,
/// 2024.
using Llama = models::TransformerModel<LlamaOptions, network_of, exchange_of>;

}  // namespace titan::llama
