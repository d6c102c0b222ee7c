// Options of Qwen3 models, which [model] may set and flavors preset. The defaults are those of
// Qwen3 0.6B except for weight tying, as in torchtitan v0.2.2.
#pragma once

#include <cstdint>

#include <titan/models/shared_options.h>
#include <titan/models/transformer_model.h>

namespace titan::qwen3 {

using models::AttentionType;

struct Qwen3Options : models::BalanceOptions {
  int64_t dim = 1024;
  int64_t n_layers = 28;
  int64_t n_heads = 16;
  int64_t n_kv_heads = 8;
  int64_t head_dim = 128;        // independent of dim / n_heads
  int64_t hidden_dim = 3072;     // of feed-forwards, without experts
  int64_t num_experts = 0;       // of each layer; 0: feed-forwards instead
  int64_t top_k = 8;             // experts chosen per token
  int64_t moe_hidden_dim = 768;  // width within one expert
  int64_t vocab_size = 151936;
  double norm_eps = 1e-6;
  double rope_theta = 1000000;
  int64_t max_position_embeddings =
      40960;               // context length of the weights; exported to Hugging Face
  bool depth_init = true;  // initialize output projections with a smaller std in deeper layers
  bool enable_weight_tying = false;
  AttentionType attn_type = AttentionType::sdpa;
};

models::Transformer network_of(const Qwen3Options& options, const ModelContext& context);
models::Exchange exchange_of(const Qwen3Options& options, const models::Transformer& network,
                             const Value& theirs);

/// Qwen3: Llama's network with a norm on every head of queries and keys before the rotation, and
/// heads of 128 elements whatever the model's width. All feed-forwards may be replaced by experts.
/// Yang et al., 2025.
using Qwen3 = models::TransformerModel<Qwen3Options, network_of, exchange_of>;

}  // namespace titan::qwen3
