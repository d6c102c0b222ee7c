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
  builder.option("n_dense_layers", &O::n_dense_layers, "Number of first layers without experts")
      .at_least(0)
      .option("n_heads", &O::n_heads, "Number of heads")
      .at_least(1);
  shared.vocab_size();
  builder
      .option("q_lora_rank", &O::q_lora_rank,
              "Width of the latent of queries; 0 = one projection without a latent")
      .at_least(0)
      .option("kv_lora_rank", &O::kv_lora_rank, "Width of the latent of keys and values")
      .at_least(1)
      .option("qk_nope_head_dim", &O::qk_nope_head_dim,
              "Elements of a head of queries and keys that are not rotated")
      .at_least(1)
      .option("qk_rope_head_dim", &O::qk_rope_head_dim,
              "Rotated elements of a head; all heads share those of keys")
      .at_least(2)
      .option("v_head_dim", &O::v_head_dim, "Width of a head of values")
      .at_least(1);
  shared.norm_eps();
  builder
      .option("latent_norm_eps", &O::latent_norm_eps,
              "Epsilon of the latents' normalisations; transformers supports only 1e-6")
      .greater_than(0);
  shared.depth_init().attn_type();
}

void declare_experts(Builder& builder) {
  auto shared = models::shared_options<O>(builder);
  shared.num_experts("Experts of each layer with experts");
  builder
      .option("num_shared_experts", &O::num_shared_experts,
              "Experts that every token passes through: one feed-forward of this many times "
              "moe_inter_dim")
      .at_least(0);
  shared.top_k();
  builder
      .option("score_func", &O::score_func, "Function from the gate's logits to scores",
              {{"softmax", nn::RouterScore::softmax}, {"sigmoid", nn::RouterScore::sigmoid}})
      .option("route_norm", &O::route_norm, "Divide the scores of a token's experts by their sum")
      .option("route_scale", &O::route_scale, "Factor on these scores, after route_norm")
      .greater_than(0)
      .option("num_expert_groups", &O::num_expert_groups,
              "Groups of neighbouring experts that routing chooses from; 0 = no groups")
      .at_least(0)
      .option("num_limited_groups", &O::num_limited_groups,
              "Groups that a token's experts may come from")
      .at_least(0)
      .option("group_score", &O::group_score,
              "Score of a group: best_two = the sum of its two best experts (DeepSeek-V3), "
              "best = its best expert (DeepSeek-V2)",
              {{"best_two", nn::GroupScore::best_two}, {"best", nn::GroupScore::best}});
}

void declare_positions(Builder& builder) {
  auto shared = models::shared_options<O>(builder);
  shared.rope_theta();
  builder.option("yarn", &O::yarn,
                 "When YaRN is applied: always, as transformers does, or if training.seq_len is "
                 "beyond original_seq_len, as torchtitan v0.2.2 does",
                 {{"beyond_original", Yarn::beyond_original}, {"always", Yarn::always}});
  shared.yarn("YaRN: factor by which long wavelengths are stretched; 1 = no YaRN");
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
