// Options of Mixtral models, which [model] may set and flavors preset.
#pragma once

#include <cstdint>
#include <optional>

#include <titan/models/shared_options.h>
#include <titan/models/transformer_model.h>

namespace titan::mixtral {

struct MixtralOptions : models::BalanceOptions {
  int64_t dim = 4096;
  int64_t n_layers = 32;
  int64_t n_heads = 32;
  std::optional<int64_t> n_kv_heads;  // unset: n_heads
  std::optional<int64_t> head_dim;    // unset: dim / n_heads
  int64_t vocab_size = 32000;
  int64_t hidden_dim = 14336;  // width within one expert
  int64_t num_experts = 8;
  int64_t top_k = 2;  // experts chosen per token
  double norm_eps = 1e-5;
  double rope_theta = 1e6;
  int64_t max_position_embeddings =
      32768;               // context length of the weights; exported to Hugging Face
  bool depth_init = true;  // initialize output projections with a smaller std in deeper layers
  bool enable_weight_tying = false;
};

models::Transformer network_of(const MixtralOptions& options, const ModelContext& context);
models::Exchange exchange_of(const MixtralOptions& options, const models::Transformer& network,
                             const Value& theirs);

/// Mixtral 8x7B and 8x22B: a Llama whose feed-forwards are mixtures of experts. Jiang et al., 2024
/// (arXiv:2401.04088).
using Mixtral = models::TransformerModel<MixtralOptions, network_of, exchange_of>;

}  // namespace titan::mixtral
