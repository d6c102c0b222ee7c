// Options of gpt-oss models, which [model] may set and flavors preset. Names and defaults are those
// of torchtitan v0.2.2, whose defaults are gpt-oss 20b's.
#pragma once

#include <cstdint>

#include <titan/models/shared_options.h>
#include <titan/models/transformer_model.h>

namespace titan::gpt_oss {

using models::AttentionType;

struct GptOssOptions : models::BalanceOptions {
  int64_t dim = 2880;
  int64_t n_layers = 24;
  int64_t n_heads = 64;
  int64_t n_kv_heads = 8;
  int64_t head_dim = 64;              // independent of dim / n_heads
  int64_t moe_hidden_dim = 2880;      // width within one expert
  int64_t num_experts = 32;           // of each layer
  int64_t top_k = 4;                  // experts chosen per token
  double swiglu_limit = 7;            // gates and ups are clamped to it
  int64_t sliding_window_size = 128;  // tokens visible in layers of even index
  int64_t vocab_size = 201088;
  double norm_eps = 1e-5;
  double rope_theta = 150000;
  double rope_factor = 32;          // YaRN
  int64_t original_seq_len = 4096;  // YaRN
  double beta_fast = 32;            // YaRN
  double beta_slow = 1;             // YaRN
  int64_t max_position_embeddings =
      131072;              // context length of the weights; exported to Hugging Face
  bool depth_init = true;  // initialize weights with a smaller std in deeper layers
  AttentionType attn_type = AttentionType::sdpa;
};

models::Transformer network_of(const GptOssOptions& options, const ModelContext& context);
models::Exchange exchange_of(const GptOssOptions& options, const models::Transformer& network,
                             const Value& theirs);

/// gpt-oss: experts with biases and clamped gates, a sink in the softmax of each head, and a window
/// in every second layer. OpenAI, 2025. All weights, biases and sinks of a layer are initialized
/// like output projections, as in torchtitan v0.2.2. The exception is the bias of the gate: it is
/// zero here, and uninitialized memory in torchtitan.
using GptOss = models::TransformerModel<GptOssOptions, network_of, exchange_of>;

}  // namespace titan::gpt_oss
