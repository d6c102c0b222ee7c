// The dimensions of a Llama 4: what [model] may override and flavors preset. Names are those of
// torchtitan v0.2.2 where it has the option.
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
  std::optional<int64_t> n_kv_heads;  // unset: as many as n_heads
  std::optional<int64_t> head_dim;    // unset: dim / n_heads
  int64_t vocab_size = 202048;

  int64_t multiple_of = 256;                 // widths that follow from dim are multiples of this
  std::optional<double> ffn_dim_multiplier;  // on the widths that follow from dim
  std::optional<int64_t> hidden_dim;         // of feed-forwards; unset: follows from dim
  std::optional<int64_t> moe_hidden_dim;     // within one expert; unset: follows from dim
  bool auto_scale_hidden_dim = true;  // the latter is divided by the experts that a token meets
  int64_t num_experts = 8;
  int64_t num_shared_experts = 1;  // that each token meets, too
  int64_t top_k = 1;               // experts that a token goes to
  /// Layer i has experts where i + 1 is a multiple of this.
  int64_t interleave_moe_layer_step = 2;

  double norm_eps = 1e-5;
  double rope_theta = 500000;
  RopeScaling rope_scaling = {.high_freq_factor = 1};  // wavelengths are scaled or left alone
  /// Layer i has no positions where i % this is nope_layer_offset; unset: all have.
  std::optional<int64_t> every_n_layers_nope;
  int64_t nope_layer_offset = 0;
  /// Tokens that see each other in layers with positions; 0: all. Unset: 8192 where some layers
  /// have no positions, else 0.
  std::optional<int64_t> attention_chunk_size;
  bool use_qk_norm = false;              // of layers with positions, after the rotation
  bool attn_temperature_tuning = false;  // of layers without
  int64_t floor_scale = 8192;            // positions that it is the same for
  double attn_scale = 0.1;               // how much it grows

  int64_t max_position_embeddings =
      1048576;             // longest sequence the weights are meant for, for config.json
  bool depth_init = true;  // output projections are drawn narrower the deeper their layer
  bool enable_weight_tying = false;
  AttentionType attn_type = AttentionType::sdpa;

  bool has_positions(int64_t layer) const {
    return !every_n_layers_nope || layer % *every_n_layers_nope != nope_layer_offset;
  }
  bool has_experts(int64_t layer) const { return (layer + 1) % interleave_moe_layer_step == 0; }
  /// 0: none.
  int64_t chunk_size() const {
    return attention_chunk_size.value_or(every_n_layers_nope ? 8192 : 0);
  }
};

models::Transformer network_of(const Llama4Options& options, const ModelContext& context);
models::Exchange exchange_of(const Llama4Options& options, const models::Transformer& network,
                             const Value& theirs);

/// Llama 4: experts whose rows are weighed before them, layers without positions, and attention
/// within chunks in the others. Meta, 2025. FLOPs are counted as torchtitan v0.2.2 does: as if
/// every layer saw whole rows.
using Llama4 = models::TransformerModel<Llama4Options, network_of, exchange_of>;

}  // namespace titan::llama4
