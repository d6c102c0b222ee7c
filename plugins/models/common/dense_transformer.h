// The network of Llama and of those that followed it: pre-normalised blocks of grouped-query
// attention with rotary positions and of a SwiGLU. A model of this kind says what its options make
// of these numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <titan/model.h>
#include <titan/nn/rope.h>

namespace titan::models {

struct DenseTransformer {
  int64_t dim = 0;  ///< width of the residual stream
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_dim = 0;  ///< width of the feed-forward
  int64_t vocab_size = 0;
  double norm_eps = 1e-5;
  nn::RopeOptions rope = {};
  bool normalizes_qk = false;  ///< each head of queries and keys, by norm_eps
  bool depth_init = true;      ///< output projections are drawn narrower the deeper their layer is
  bool is_tied = false;        ///< embedding and head share one matrix
};

/// Throws a config Error in the words of [model] for heads that do not fit.
void check_heads(int64_t n_heads, int64_t n_kv_heads);

/// Layers "tok_embeddings", "layers.0" ..., "output" (normalisation and head). Initialised as
/// torchtitan v0.2.2 does.
std::vector<Layer> build_layers(const DenseTransformer& network);

/// Weights of norms count as torchtitan v0.2.2 counts them; the head does whether tied or not.
Flops flops_per_token(const DenseTransformer& network, int64_t seq_len);

}  // namespace titan::models
