// The dimensions of a gpt-oss model: what [model] may override and flavors preset. Names and
// defaults are those of torchtitan v0.2.2, whose defaults are gpt-oss 20b's.
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
  int64_t head_dim = 64;              // whatever dim / n_heads is
  int64_t moe_hidden_dim = 2880;      // width within one expert
  int64_t num_experts = 32;           // of each layer
  int64_t top_k = 4;                  // experts that a token goes to
  double swiglu_limit = 7;            // gates and ups beyond it are cut off
  int64_t sliding_window_size = 128;  // tokens that layers of even index see
  int64_t vocab_size = 201088;
  double norm_eps = 1e-5;
  double rope_theta = 150000;
  double rope_factor = 32;          // YaRN
  int64_t original_seq_len = 4096;  // YaRN
  double beta_fast = 32;            // YaRN
  double beta_slow = 1;             // YaRN
  int64_t max_position_embeddings =
      131072;              // longest sequence the weights are meant for; told to Hugging Face
  bool depth_init = true;  // a layer's weights are drawn narrower the deeper it is
  AttentionType attn_type = AttentionType::sdpa;
};

models::Transformer network_of(const GptOssOptions& options, const ModelContext& context);
models::Exchange exchange_of(const GptOssOptions& options, const models::Transformer& network,
                             const Value& theirs);

/// gpt-oss: experts with biases and cut-off gates, a sink in the softmax of each head, and a window
/// in every second layer. OpenAI, 2025. All of a layer's weights, biases and sinks are drawn by the
/// rule of output projections, as torchtitan v0.2.2 does, but for the bias of the gate, which is
/// zero (there it is what the memory held).
using GptOss = models::TransformerModel<GptOssOptions, network_of, exchange_of>;

}  // namespace titan::gpt_oss
