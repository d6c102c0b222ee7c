#include "option_schema.h"

namespace titan::deepseek_v3 {
namespace {

using Builder = ComponentBuilder<DeepseekV3>;
using O = DeepseekV3Options;

void declare_sizes(Builder& builder) {
  builder.option("dim", &O::dim, "Width of the residual stream")
      .at_least(1)
      .option("inter_dim", &O::inter_dim, "Width of the feed-forward of layers without experts")
      .at_least(1)
      .option("moe_inter_dim", &O::moe_inter_dim, "Width within one expert")
      .at_least(1)
      .option("n_layers", &O::n_layers, "Number of transformer blocks")
      .at_least(1)
      .option("n_dense_layers", &O::n_dense_layers, "The first of them, without experts")
      .at_least(0)
      .option("n_heads", &O::n_heads, "Number of heads")
      .at_least(1)
      .option("vocab_size", &O::vocab_size, "Rows of the embedding and of the head")
      .at_least(1)
      .option("q_lora_rank", &O::q_lora_rank,
              "Width of the latent that queries are made of; 0 = they are projected at once")
      .at_least(0)
      .option("kv_lora_rank", &O::kv_lora_rank,
              "Width of the latent that keys and values are made of")
      .at_least(1)
      .option("qk_nope_head_dim", &O::qk_nope_head_dim,
              "Elements of a head of queries and keys that are not rotated")
      .at_least(1)
      .option("qk_rope_head_dim", &O::qk_rope_head_dim, "Those that are; all heads share the keys'")
      .at_least(2)
      .option("v_head_dim", &O::v_head_dim, "Width of a head of values")
      .at_least(1)
      .option("norm_eps", &O::norm_eps, "Epsilon of the normalisations")
      .greater_than(0)
      .option("latent_norm_eps", &O::latent_norm_eps,
              "Epsilon of those of latents; transformers has 1e-6 and no other")
      .greater_than(0)
      .option("depth_init", &O::depth_init,
              "Draw output projections narrower in deeper layers (else by n_layers)")
      .option("attn_type", &O::attn_type,
              "sdpa: causal over the whole row; flex and varlen: within documents",
              {{"sdpa", AttentionType::sdpa},
               {"flex", AttentionType::flex},
               {"varlen", AttentionType::varlen}});
}

void declare_experts(Builder& builder) {
  builder.option("num_experts", &O::num_experts, "Experts of each layer that has them")
      .at_least(1)
      .option("num_shared_experts", &O::num_shared_experts,
              "Every token goes through these, too: one feed-forward of so many times "
              "moe_inter_dim")
      .at_least(0)
      .option("top_k", &O::top_k, "Experts that a token goes to")
      .at_least(1)
      .option("score_func", &O::score_func, "What makes scores of the gate's logits",
              {{"softmax", nn::RouterScore::softmax}, {"sigmoid", nn::RouterScore::sigmoid}})
      .option("route_norm", &O::route_norm, "Scores of a token's experts are divided by their sum")
      .option("route_scale", &O::route_scale, "Factor on them, after that")
      .greater_than(0)
      .option("num_expert_groups", &O::num_expert_groups,
              "Groups of neighbouring experts, of which a token's are chosen; 0 = all are one")
      .at_least(0)
      .option("num_limited_groups", &O::num_limited_groups,
              "Groups that a token's experts may be of")
      .at_least(0)
      .option("group_score", &O::group_score,
              "What a group is worth: best_two = the sum of its two best experts (DeepSeek-V3), "
              "best = its best (DeepSeek-V2)",
              {{"best_two", nn::GroupScore::best_two}, {"best", nn::GroupScore::best}});
}

void declare_positions(Builder& builder) {
  builder.option("rope_theta", &O::rope_theta, "Base of the rotary wavelengths")
      .greater_than(1)
      .option("yarn", &O::yarn,
              "When YaRN is applied: always, as transformers does, or where training.seq_len is "
              "beyond original_seq_len, as torchtitan v0.2.2 does",
              {{"beyond_original", Yarn::beyond_original}, {"always", Yarn::always}})
      .option("rope_factor", &O::rope_factor,
              "YaRN: long wavelengths are stretched by it; 1 = no YaRN")
      .at_least(1)
      .option("original_seq_len", &O::original_seq_len,
              "YaRN: positions that wavelengths are measured against")
      .at_least(1)
      .option("beta_fast", &O::beta_fast,
              "YaRN: wavelengths that fit original_seq_len more often stay")
      .greater_than(0)
      .option("beta_slow", &O::beta_slow,
              "YaRN: wavelengths that fit original_seq_len less often are stretched in full")
      .greater_than(0)
      .option("mscale", &O::mscale,
              "YaRN: scores are multiplied by (0.1 mscale ln(rope_factor) + 1)^2")
      .at_least(0)
      .option("max_position_embeddings", &O::max_position_embeddings,
              "Longest sequence the weights are meant for, as the exported config.json tells it; "
              "at least training.seq_len")
      .at_least(1);
}

}  // namespace

void declare_options(Builder& builder) {
  declare_sizes(builder);
  declare_experts(builder);
  declare_positions(builder);
  models::declare_balance<O>(builder);
  builder.check([](const O& own, const JobView& job, RuleReport& report) {
    models::check_balance(own, job, report);
  });
}

}  // namespace titan::deepseek_v3
