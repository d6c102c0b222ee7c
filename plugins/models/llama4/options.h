// Options of Llama 4 models, which [model] may set and flavors preset. Names are those of
// torchtitan v0.2.2 if it has the option.
#pragma once

#include <cstdint>
#include <optional>

#include <titan/models/shared_options.h>
#include <titan/models/transformer_model.h>

namespace titan::llama4 {

using models::AttentionType;
using models::RopeScaling;

struct Llama4Options : models::BalanceOptions {
  int64_t dim = 5120;
  int64_t n_layers = 48;
  int64_t n_heads = 40;
  std::optional<int64_t> n_kv_heads;  // unset: n_heads
  std::optional<int64_t> head_dim;    // unset: dim / n_heads
  int64_t vocab_size = 202048;

  int64_t multiple_of = 256;                 // widths that follow from dim are multiples of this
  std::optional<double> ffn_dim_multiplier;  // on the widths that follow from dim
  std::optional<int64_t> hidden_dim;         // of feed-forwards; unset: follows from dim
  std::optional<int64_t> moe_hidden_dim;     // within one expert; unset: follows from dim
  bool auto_scale_hidden_dim = true;  // divide the derived moe_hidden_dim by the experts per token
  int64_t num_experts = 8;
  int64_t num_shared_experts = 1;  // used by every token
  int64_t top_k = 1;               // experts chosen per token
  /// Layer i has experts where i + 1 is a multiple of this.
  int64_t interleave_moe_layer_step = 2;

  double norm_eps = 1e-5;
  double rope_theta = 500000;
  RopeScaling rope_scaling = {.high_freq_factor = 1};  // wavelengths are scaled or unchanged
  /// Layer i has no positions if i % this is nope_layer_offset; unset: all layers have positions.
  std::optional<int64_t> every_n_layers_nope;
  int64_t nope_layer_offset = 0;
  /// Size of the chunks within which tokens see each other in layers with positions; 0: no chunks.
  /// Unset: 8192 if some layers have no positions, else 0.
  std::optional<int64_t> attention_chunk_size;
  bool use_qk_norm = false;              // of layers with positions, after the rotation
  bool attn_temperature_tuning = false;  // of layers without positions
  int64_t floor_scale = 8192;            // positions with the same temperature
  double attn_scale = 0.1;               // growth of the temperature

  int64_t max_position_embeddings = 1048576;  // context length of the weights, for config.json
  bool depth_init = true;  // initialize output projections with a smaller std in deeper layers
  bool enable_weight_tying = false;
  AttentionType attn_type = AttentionType::sdpa;

  bool has_positions(int64_t layer) const {
    return !every_n_layers_nope || layer % *every_n_layers_nope != nope_layer_offset;
  }
  bool has_experts(int64_t layer) const { return (layer + 1) % interleave_moe_layer_step == 0; }
  /// 0: no chunks.
  int64_t chunk_size() const {
    return attention_chunk_size.value_or(every_n_layers_nope ? 8192 : 0);
  }
};

models::Transformer network_of(const Llama4Options& options, const ModelContext& context);
models::Exchange exchange_of(const Llama4Options& options, const models::Transformer& network,
                             const Value& theirs);

/// Llama 4: experts whose input rows are weighted, some layers without positions, and attention
/// within chunks in the others. Meta, 2025. FLOPs are counted as in torchtitan v0.2.2: as if every
/// layer saw whole rows.
using Llama4 = models::TransformerModel<Llama4Options, network_of, exchange_of>;

}  // namespace titan::llama4
