// Options of DeepSeek-V2 and DeepSeek-V3 models, which [model] may set and flavors preset. Names
// are those of torchtitan v0.2.2, the defaults those of its 16B.
#pragma once

#include <cstdint>

#include <titan/models/shared_options.h>
#include <titan/models/transformer_model.h>
#include <titan/nn/router.h>

namespace titan::deepseek_v3 {

using models::AttentionType;

/// When YaRN stretches positions and scales scores.
enum class Yarn {
  beyond_original,  ///< if training.seq_len is above original_seq_len, as in torchtitan v0.2.2
  always,           ///< as in transformers
};

/// model.load_balance_coeff of the flavors, as in the training of DeepSeek-V3.
inline constexpr double kBalanceRate = 1e-3;

struct DeepseekV3Options : models::BalanceOptions {
  int64_t dim = 2048;
  int64_t inter_dim = 10944;     // width of the feed-forward of layers without experts
  int64_t moe_inter_dim = 1408;  // width within one expert
  int64_t n_layers = 27;
  int64_t n_dense_layers = 1;  // first layers without experts
  int64_t n_heads = 16;
  int64_t vocab_size = 102400;

  int64_t q_lora_rank = 0;  // width of the queries' latent; 0: one projection, no latent
  int64_t kv_lora_rank = 512;
  int64_t qk_nope_head_dim = 128;
  int64_t qk_rope_head_dim = 64;
  int64_t v_head_dim = 128;

  int64_t num_experts = 64;
  int64_t num_shared_experts = 2;
  int64_t top_k = 6;  // experts chosen per token
  nn::RouterScore score_func = nn::RouterScore::softmax;
  bool route_norm = false;
  double route_scale = 1;
  int64_t num_expert_groups = 0;   // 0: no groups
  int64_t num_limited_groups = 0;  // groups that a token's experts may come from
  nn::GroupScore group_score = nn::GroupScore::best_two;

  double norm_eps = 1e-5;
  double latent_norm_eps = 1e-6;  // of the latents' norms; transformers has only 1e-6
  double rope_theta = 10000;
  Yarn yarn = Yarn::beyond_original;
  double rope_factor = 40;
  int64_t original_seq_len = 4096;
  double beta_fast = 32;
  double beta_slow = 1;
  double mscale = 1;
  int64_t max_position_embeddings =
      163840;              // context length of the weights; exported to Hugging Face
  bool depth_init = true;  // initialize output projections with a smaller std in deeper layers
  AttentionType attn_type = AttentionType::sdpa;
};

models::Transformer network_of(const DeepseekV3Options& options, const ModelContext& context);
models::Exchange exchange_of(const DeepseekV3Options& options, const models::Transformer& network,
                             const Value& theirs);

/// DeepSeek-V2 and DeepSeek-V3: latent attention, and mixtures of experts in all but the first
/// layers. Liu et al., 2024 (arXiv:2405.04434, arXiv:2412.19437).
using DeepseekV3 = models::TransformerModel<DeepseekV3Options, network_of, exchange_of>;

/// The class of transformers that computes this network: DeepseekV2ForCausalLM,
/// DeepseekV3ForCausalLM or none.
enum class Kind { v2, v3, other };
Kind kind_of(const DeepseekV3Options& options);

}  // namespace titan::deepseek_v3
