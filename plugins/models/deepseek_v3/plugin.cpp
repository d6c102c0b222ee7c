// Registers the model deepseek_v3 and the flavors that torchtitan v0.2.2 has.
#include <utility>

#include <titan/plugin.h>

#include "option_schema.h"

TITAN_PLUGIN(plugin) {
  using titan::Value;
  using titan::deepseek_v3::kBalanceRate;

  plugin
      .add<titan::deepseek_v3::DeepseekV3>(
          "deepseek_v3", "DeepSeek-V2 and -V3: latent attention, dense layers followed by experts.")
      .options(titan::deepseek_v3::declare_options);

  Value debug = Value::map({{"dim", 256},
                            {"inter_dim", 1024},
                            {"moe_inter_dim", 256},
                            {"n_layers", 6},
                            {"vocab_size", 2048},
                            {"num_experts", 8},
                            {"top_k", 3},
                            {"mscale", 0.7},
                            {"load_balance_coeff", kBalanceRate}});
  plugin.add_flavor("deepseek_v3", "debugmodel", "33 million parameters, for tests and first runs",
                    debug);
  debug["attn_type"] = "flex";
  plugin.add_flavor("deepseek_v3", "debugmodel_flex_attn", "debugmodel, attention within documents",
                    std::move(debug));
  plugin.add_flavor("deepseek_v3", "16B", "DeepSeek-V2-Lite",
                    {{"dim", 2048},
                     {"n_layers", 27},
                     {"n_heads", 16},
                     {"mscale", 0.7},
                     {"load_balance_coeff", kBalanceRate},
                     {"attn_type", "flex"}});
  // torchtitan v0.2.2 scores groups by their two best experts here, the published model by the best
  plugin.add_flavor("deepseek_v3", "236B", "DeepSeek-V2",
                    {{"dim", 5120},
                     {"inter_dim", 12288},
                     {"moe_inter_dim", 1536},
                     {"n_layers", 60},
                     {"n_heads", 128},
                     {"q_lora_rank", 1536},
                     {"num_experts", 160},
                     {"route_scale", 16.0},
                     {"num_expert_groups", 8},
                     {"num_limited_groups", 3},
                     {"group_score", "best"},
                     {"load_balance_coeff", kBalanceRate},
                     {"attn_type", "flex"}});
  plugin.add_flavor("deepseek_v3", "671B", "DeepSeek-V3",
                    {{"dim", 7168},
                     {"inter_dim", 18432},
                     {"moe_inter_dim", 2048},
                     {"n_layers", 61},
                     {"n_dense_layers", 3},
                     {"n_heads", 128},
                     {"vocab_size", 129280},
                     {"q_lora_rank", 1536},
                     {"num_experts", 256},
                     {"num_shared_experts", 1},
                     {"top_k", 8},
                     {"score_func", "sigmoid"},
                     {"route_norm", true},
                     {"route_scale", 2.5},
                     {"num_expert_groups", 8},
                     {"num_limited_groups", 4},
                     {"load_balance_coeff", kBalanceRate},
                     {"attn_type", "flex"}});
}
