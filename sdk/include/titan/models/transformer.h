// The network of a family of decoders: blocks of attention with rotary positions and of a SwiGLU or
// a mixture of experts, with RMSNorm. A model of the family fills these fields from its options
// (titan/models/transformer_model.h). Touvron et al., 2023 (arXiv:2302.13971).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <titan/export.h>
#include <titan/model.h>
#include <titan/models/transformer_block.h>
#include <titan/nn/moe.h>
#include <titan/nn/rope.h>

TITAN_OPTIONAL_HEADER(models_transformer);

namespace titan::models {

/// Experts in place of feed-forwards. build_layers sets the router's dim and the initialisations:
/// the router as output projections, the experts as feed-forwards.
using Mixture = nn::MoeOptions;

/// Size of a model's own attention, for FLOPs.
struct AttentionCost {
  double weights = 0;     ///< number of weights per layer, including its norms
  double pair_width = 0;  ///< width of keys plus width of values, summed over all heads
};

/// The RMSNorm of queries and keys before rotation, with the network's norm_eps.
enum class QkNorm {
  none,
  of_heads,        ///< each head separately; all heads share one weight (Henry et al., 2020)
  of_projections,  ///< all heads of a token together, with a weight per element
};

struct Transformer {
  int64_t dim = 0;  ///< width of the residual stream
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_dim = 0;  ///< width of the feed-forward in layers without experts
  std::optional<Mixture> mixture = {};
  /// Which layers have experts; null: all.
  std::function<bool(int64_t layer)> has_mixture = {};
  int64_t vocab_size = 0;
  double norm_eps = 1e-5;
  nn::RopeOptions rope = {};
  QkNorm qk_norm = QkNorm::none;
  bool norms_after = false;  ///< BlockOptions::norms_after
  bool depth_init = true;    ///< scale of output projections decreases with depth
  bool is_tied = false;      ///< embedding and head share one matrix

  bool isolates_documents = false;  ///< Model::isolates_documents
  /// Maximum sequence length of the weights, as written to an export.
  int64_t max_position_embeddings = 0;

  /// Changes the options of layer `layer`, for models with properties that the fields above cannot
  /// express.
  std::function<void(int64_t layer, BlockOptions& block)> adapt = {};
  /// Set if attention is not nn::Attention (BlockOptions::make_attention), or has more than its
  /// four matrices.
  std::optional<AttentionCost> attention_cost = {};

  /// Whether layer `layer` has experts.
  bool is_mixture(int64_t layer) const { return mixture && (!has_mixture || has_mixture(layer)); }
};

/// Number of key heads and width of a head.
struct HeadSizes {
  int64_t n_kv_heads;
  int64_t head_dim;
};
/// Unset values become n_heads and dim / n_heads. Throws a config Error that names the keys of
/// [model] if the sizes do not match or a head cannot be rotated.
TITAN_API HeadSizes head_sizes(int64_t dim, int64_t n_heads, std::optional<int64_t> n_kv_heads,
                               std::optional<int64_t> head_dim);
/// Throws a config Error that names the keys of [model] if top_k > num_experts.
TITAN_API void check_experts(int64_t num_experts, int64_t top_k);

/// Layers "tok_embeddings", "layers.0" ..., "output" (normalisation and head). Initialised as in
/// torchtitan v0.2.2.
TITAN_API std::vector<Layer> build_layers(const Transformer& network);

/// Counts only the experts that a token is routed to. Weights of norms and biases count as in
/// torchtitan v0.2.2; the head counts even if tied.
TITAN_API Flops flops_per_token(const Transformer& network, int64_t seq_len);

}  // namespace titan::models
