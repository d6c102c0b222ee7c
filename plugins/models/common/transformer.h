// The network of Llama and of those that followed it: pre-normalised blocks of grouped-query
// attention with rotary positions and of a SwiGLU or a mixture of them. A model of this kind says
// what its options make of these numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <titan/model.h>
#include <titan/nn/rope.h>
#include <titan/nn/router.h>

namespace titan::models {

/// Experts in the place of every feed-forward.
struct Mixture {
  nn::RouterOptions router;  ///< its dim is the network's and its init that of output projections
  int64_t hidden_dim = 0;    ///< width within one expert
};

struct Transformer {
  int64_t dim = 0;  ///< width of the residual stream
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_dim = 0;  ///< width of the feed-forward, where there is no mixture
  std::optional<Mixture> mixture = {};
  int64_t vocab_size = 0;
  double norm_eps = 1e-5;
  nn::RopeOptions rope = {};
  bool normalizes_qk = false;  ///< each head of queries and keys, by norm_eps
  bool depth_init = true;      ///< output projections are drawn narrower the deeper their layer is
  bool is_tied = false;        ///< embedding and head share one matrix
};

/// Throws a config Error in the words of [model] for heads that do not fit.
void check_heads(int64_t n_heads, int64_t n_kv_heads);
/// The same of more choices than experts.
void check_experts(int64_t num_experts, int64_t top_k);

/// Layers "tok_embeddings", "layers.0" ..., "output" (normalisation and head). Initialised as
/// torchtitan v0.2.2 does.
std::vector<Layer> build_layers(const Transformer& network);

/// Of the experts that a token goes through. Weights of norms count as torchtitan v0.2.2 counts
/// them; the head does whether tied or not.
Flops flops_per_token(const Transformer& network, int64_t seq_len);

}  // namespace titan::models
