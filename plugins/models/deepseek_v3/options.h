// The dimensions of a DeepSeek-V2 or DeepSeek-V3: what [model] may override and flavors preset.
// Names are those of torchtitan v0.2.2, the defaults those of its 16B.
#pragma once

#include <cstdint>

#include <titan/models/shared_options.h>
#include <titan/models/transformer_model.h>
#include <titan/nn/router.h>

namespace titan::deepseek_v3 {

using models::AttentionType;

/// When positions are stretched, and scores scaled, by YaRN.
enum class Yarn {
  beyond_original,  ///< where training.seq_len is above original_seq_len, as in v0.2.2
  always,           ///< as in transformers
};

/// model.load_balance_coeff of the flavors: what DeepSeek-V3 was trained with.
inline constexpr double kBalanceRate = 1e-3;

struct DeepseekV3Options : models::BalanceOptions {
  int64_t dim = 2048;
  int64_t inter_dim = 10944;     // width of the feed-forward of layers without experts
  int64_t moe_inter_dim = 1408;  // width within one expert
  int64_t n_layers = 27;
  int64_t n_dense_layers = 1;  // the first layers, without experts
  int64_t n_heads = 16;
  int64_t vocab_size = 102400;

  int64_t q_lora_rank = 0;  // width of the queries' latent; 0: queries are projected at once
  int64_t kv_lora_rank = 512;
  int64_t qk_nope_head_dim = 128;
  int64_t qk_rope_head_dim = 64;
  int64_t v_head_dim = 128;

  int64_t num_experts = 64;
  int64_t num_shared_experts = 2;
  int64_t top_k = 6;  // experts that a token goes to
  nn::RouterScore score_func = nn::RouterScore::softmax;
  bool route_norm = false;
  double route_scale = 1;
  int64_t num_expert_groups = 0;   // 0: there are none
  int64_t num_limited_groups = 0;  // of them a token's experts are chosen from
  nn::GroupScore group_score = nn::GroupScore::best_two;

  double norm_eps = 1e-5;
  double latent_norm_eps = 1e-6;  // of the latents' norms; transformers has no other
  double rope_theta = 10000;
  Yarn yarn = Yarn::beyond_original;
  double rope_factor = 40;
  int64_t original_seq_len = 4096;
  double beta_fast = 32;
  double beta_slow = 1;
  double mscale = 1;
  int64_t max_position_embeddings =
      163840;              // longest sequence the weights are meant for; told to Hugging Face
  bool depth_init = true;  // output projections are drawn narrower the deeper their layer
  AttentionType attn_type = AttentionType::sdpa;
};

models::Transformer network_of(const DeepseekV3Options& options, const ModelContext& context);
models::Exchange exchange_of(const DeepseekV3Options& options, const models::Transformer& network,
                             const Value& theirs);

/// DeepSeek-V2 and DeepSeek-V3: latent attention, a mixture of experts behind the first layers. Liu
/// et al., 2024 (arXiv:2405.04434, arXiv:2412.19437).
using DeepseekV3 = models::TransformerModel<DeepseekV3Options, network_of, exchange_of>;

/// Whose network it is to transformers: DeepseekV2ForCausalLM's, DeepseekV3ForCausalLM's or none
/// that it has.
enum class Kind { v2, v3, other };
Kind kind_of(const DeepseekV3Options& options);

}  // namespace titan::deepseek_v3
