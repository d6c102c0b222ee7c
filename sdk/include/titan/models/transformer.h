// The network of a family of decoders: blocks of attention with rotary positions and of a SwiGLU,
// or a mixture of them, with RMSNorm. A model of the family says what its options make of these
// numbers (titan/models/transformer_model.h). Touvron et al., 2023 (arXiv:2302.13971).
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

/// Experts in the place of feed-forwards. The router's dim is the network's, its init that of
/// output projections, and the experts' inits are those of a feed-forward.
using Mixture = nn::MoeOptions;

/// What a model's own attention weighs, for FLOPs.
struct AttentionCost {
  double weights = 0;     ///< of a layer, those of its norms too
  double pair_width = 0;  ///< widths of keys and of values, over all heads
};

/// Which RMSNorm queries and keys pass before they are rotated, by the network's norm_eps.
enum class QkNorm {
  none,
  of_heads,        ///< each head, all by one weight (Henry et al., 2020)
  of_projections,  ///< the heads of a token together, a weight for each element of each head
};

struct Transformer {
  int64_t dim = 0;  ///< width of the residual stream
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_dim = 0;  ///< width of the feed-forward, where there is no mixture
  std::optional<Mixture> mixture = {};
  /// Which layers have the mixture; none: all.
  std::function<bool(int64_t layer)> has_mixture = {};
  int64_t vocab_size = 0;
  double norm_eps = 1e-5;
  nn::RopeOptions rope = {};
  QkNorm qk_norm = QkNorm::none;
  bool norms_after = false;  ///< BlockOptions::norms_after
  bool depth_init = true;    ///< output projections are drawn narrower the deeper their layer is
  bool is_tied = false;      ///< embedding and head share one matrix

  bool isolates_documents = false;  ///< Model::isolates_documents
  /// Longest sequence that the weights are meant for, as an export states it.
  int64_t max_position_embeddings = 0;

  /// What layers have that the numbers above do not say: changes what they made of layer `layer`.
  std::function<void(int64_t layer, BlockOptions& block)> adapt = {};
  /// Of attention that is not nn::Attention (BlockOptions::make_attention), or is more than its
  /// four matrices.
  std::optional<AttentionCost> attention_cost = {};

  /// Whether layer `layer` has experts.
  bool is_mixture(int64_t layer) const { return mixture && (!has_mixture || has_mixture(layer)); }
};

/// Key heads and widths of heads.
struct HeadSizes {
  int64_t n_kv_heads;
  int64_t head_dim;
};
/// Unset ones become n_heads and dim / n_heads. Throws a config Error in the
/// words of [model] for heads that do not fit or cannot be rotated.
TITAN_API HeadSizes head_sizes(int64_t dim, int64_t n_heads, std::optional<int64_t> n_kv_heads,
                               std::optional<int64_t> head_dim);
/// Throws a config Error in the words of [model] for more choices than experts.
TITAN_API void check_experts(int64_t num_experts, int64_t top_k);

/// Layers "tok_embeddings", "layers.0" ..., "output" (normalisation and head). Initialised as
/// torchtitan v0.2.2 does.
TITAN_API std::vector<Layer> build_layers(const Transformer& network);

/// Of the experts that a token goes through. Weights of norms and biases count as torchtitan v0.2.2
/// counts them; the head does whether tied or not.
TITAN_API Flops flops_per_token(const Transformer& network, int64_t seq_len);

}  // namespace titan::models
