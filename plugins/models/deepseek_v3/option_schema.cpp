#include "option_schema.h"

namespace titan::deepseek_v3 {
namespace {

using Builder = ComponentBuilder<DeepseekV3>;
using O = DeepseekV3Options;

void declare_sizes(Builder& builder) {
  auto shared = models::shared_options<O>(builder);
  shared.dim();
  builder.option("inter_dim", &O::inter_dim, "Width of the feed-forward of layers without experts")
      .at_least(1)
      .option("moe_inter_dim", &O::moe_inter_dim, "Width within one expert")
      .at_least(1);
  shared.n_layers();
  builder.option("n_dense_layers", &O::n_dense_layers, "The first of them, without experts")
      .at_least(0)
      .option("n_heads", &O::n_heads, "Number of heads")
      .at_least(1);
  shared.vocab_size();
  builder
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
      .at_least(1);
  shared.norm_eps();
  builder
      .option("latent_norm_eps", &O::latent_norm_eps,
              "Epsilon of those of latents; transformers has 1e-6 and no other")
      .greater_than(0);
  shared.depth_init().attn_type();
}

void declare_experts(Builder& builder) {
  auto shared = models::shared_options<O>(builder);
  shared.num_experts("Experts of each layer that has them");
  builder
      .option("num_shared_experts", &O::num_shared_experts,
              "Every token goes through these, too: one feed-forward of so many times "
              "moe_inter_dim")
      .at_least(0);
  shared.top_k();
  builder
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
  auto shared = models::shared_options<O>(builder);
  shared.rope_theta();
  builder.option("yarn", &O::yarn,
                 "When YaRN is applied: always, as transformers does, or where training.seq_len is "
                 "beyond original_seq_len, as torchtitan v0.2.2 does",
                 {{"beyond_original", Yarn::beyond_original}, {"always", Yarn::always}});
  shared.yarn("YaRN: long wavelengths are stretched by it; 1 = no YaRN");
  builder
      .option("mscale", &O::mscale,
              "YaRN: scores are multiplied by (0.1 mscale ln(rope_factor) + 1)^2")
      .at_least(0);
  shared.max_position_embeddings();
}

}  // namespace

void declare_options(Builder& builder) {
  declare_sizes(builder);
  declare_experts(builder);
  declare_positions(builder);
  models::shared_options<O>(builder).balance();
}

}  // namespace titan::deepseek_v3
