// How the deepseek_v3 plugin reads config.json files, including those that DeepSeek published, and
// which config.json it writes. tests/referee/deepseek_referee.py checks which of these models
// transformers computes equally.
#include <initializer_list>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "core/plugin/registry.h"
#include "tests/plugins/models/deepseek_v3_fixture.h"
#include "tests/plugins/registry.h"

namespace titan {
namespace {

using titan::testing::create;
using titan::testing::names_and_config;
using titan::testing::tiny_deepseek;
using titan::testing::tiny_v3;

/// A model with the options of its config.json.
std::unique_ptr<Model> made_of(const Value& config) {
  const auto any = tiny_deepseek();
  return create<Model>("deepseek_v3", names_and_config(*any).options_for(config).value(),
                       {.seq_len = 64});
}

/// deepseek-ai/DeepSeek-V3: config.json as published, without token ids and code.
Value published_v3() {
  return parse_json(R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "ep_size": 1, "first_k_dense_replace": 3, "hidden_act": "silu",
    "hidden_size": 7168, "initializer_range": 0.02, "intermediate_size": 18432,
    "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v3",
    "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256,
    "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128,
    "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "quantization_config": {"activation_scheme": "dynamic",
    "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]},
    "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40,
    "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
    "type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid", "tie_word_embeddings": false, "topk_group": 4,
    "topk_method": "noaux_tc", "torch_dtype": "bfloat16", "use_cache": true, "v_head_dim": 128,
    "vocab_size": 129280})");
}

/// deepseek-ai/DeepSeek-V2-Lite, likewise.
Value published_v2_lite() {
  return parse_json(R"({"architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false,
    "aux_loss_alpha": 0.001, "first_k_dense_replace": 1, "hidden_act": "silu",
    "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512,
    "max_position_embeddings": 163840, "model_type": "deepseek_v2", "moe_intermediate_size": 1408,
    "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
    "norm_topk_prob": false, "num_attention_heads": 16, "num_experts_per_tok": 6,
    "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
    "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707,
    "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096, "type": "yarn"},
    "rope_theta": 10000, "routed_scaling_factor": 1.0, "scoring_func": "softmax",
    "seq_aux": true, "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy",
    "v_head_dim": 128, "vocab_size": 102400})");
}

TEST(DeepseekV3Config, MakesItselfOfPublishedConfigs) {
  const auto v3 = made_of(published_v3());
  EXPECT_THAT(names_and_config(*v3).config_differences(published_v3()), ::testing::IsEmpty());
  EXPECT_EQ(ModelPart(v3->build()).num_parameters(), 671'026'404'352);

  const auto lite = made_of(published_v2_lite());
  EXPECT_THAT(names_and_config(*lite).config_differences(published_v2_lite()),
              ::testing::IsEmpty());
  EXPECT_EQ(ModelPart(lite->build()).num_parameters(), 15'706'484'224);
  EXPECT_EQ(names_and_config(*lite).hf_config().at("n_group"), Value(1));

  Value v2 = published_v2_lite();  // deepseek-ai/DeepSeek-V2 is a larger version
  for (const auto& [name, value] :
       std::initializer_list<Value::Member>{{"hidden_size", 5120},
                                            {"intermediate_size", 12288},
                                            {"num_hidden_layers", 60},
                                            {"num_attention_heads", 128},
                                            {"num_key_value_heads", 128},
                                            {"q_lora_rank", 1536},
                                            {"n_routed_experts", 160},
                                            {"moe_intermediate_size", 1536},
                                            {"n_group", 8},
                                            {"topk_group", 3},
                                            {"topk_method", "group_limited_greedy"},
                                            {"routed_scaling_factor", 16.0}})
    v2[name] = value;
  const auto large = made_of(v2);
  EXPECT_THAT(names_and_config(*large).config_differences(v2), ::testing::IsEmpty());
  EXPECT_EQ(ModelPart(large->build()).num_parameters(), 235'741'434'880);
  EXPECT_THAT(names_and_config(*large).config_differences(published_v2_lite()),
              ::testing::Contains("topk_method is \"greedy\" there and \"group_limited_greedy\" "
                                  "here"));
}

TEST(DeepseekV3Config, MakesItselfOfWhatItTellsHuggingFace) {
  for (const auto& model :
       {tiny_v3(), tiny_v3({{"num_expert_groups", 0}, {"num_limited_groups", 0}}),
        tiny_v3({{"q_lora_rank", 0}, {"rope_factor", 1.0}, {"mscale", 0.0}}),
        tiny_deepseek({{"yarn", "always"}, {"mscale", 0.7}}),
        tiny_deepseek(
            {{"num_expert_groups", 2}, {"num_limited_groups", 1}, {"group_score", "best"}}),
        tiny_deepseek({{"route_norm", true}}), tiny_v3({{"latent_norm_eps", 1e-5}}),
        tiny_v3({{"yarn", "always"}, {"mscale", 0.0}})}) {
    const HfExchange& exchange = names_and_config(*model);
    const Value theirs = exchange.hf_config();
    EXPECT_THAT(exchange.config_differences(theirs), ::testing::IsEmpty());
    EXPECT_EQ(names_and_config(*made_of(theirs)).hf_config(), theirs);
  }
}

/// transformers does not support everything that the options can express: it would silently compute
/// something else.
TEST(DeepseekV3Config, CallsANetworkThatTransformersHasNotByAnotherName) {
  const auto type = [](const std::unique_ptr<Model>& model) {
    return names_and_config(*model).hf_config().at("model_type").as_string();
  };
  EXPECT_EQ(type(tiny_v3()), "deepseek_v3");
  EXPECT_EQ(type(tiny_deepseek()), "deepseek_v2");
  const std::string other = "titan_deepseek";
  EXPECT_EQ(type(tiny_deepseek({{"route_norm", true}})), other);
  EXPECT_EQ(type(tiny_deepseek({{"num_expert_groups", 4}, {"num_limited_groups", 2}})), other);
  EXPECT_EQ(type(tiny_v3({{"group_score", "best"}})), other);
  EXPECT_EQ(type(tiny_v3({{"num_shared_experts", 0}})), other);
  EXPECT_EQ(type(tiny_v3({{"latent_norm_eps", 1e-5}})), other);
  for (const char* flavor : {"debugmodel", "debugmodel_flex_attn", "16B", "236B", "671B"}) {
    const Value preset = titan::testing::plugin_registry().flavor("deepseek_v3", flavor).preset;
    EXPECT_NE(type(create<Model>("deepseek_v3", preset, {.seq_len = 8192})), other) << flavor;
  }
}

TEST(DeepseekV3Config, SaysWhichMembersOfAConfigItCannotFollow) {
  const auto model = tiny_v3();
  const HfExchange& exchange = names_and_config(*model);
  Value theirs = exchange.hf_config();
  theirs["rope_interleave"] = false;
  theirs["moe_layer_freq"] = 2;
  theirs["norm_topk_prob"] = false;
  theirs["num_key_value_heads"] = 2;
  theirs["quantization_config"] = Value::map({{"quant_method", "fp8"}});
  theirs["rope_scaling"]["mscale_all_dim"] = 0.5;
  EXPECT_THAT(exchange.config_differences(theirs),
              ::testing::UnorderedElementsAre("rope_interleave is false there and true here",
                                              "moe_layer_freq is 2 there and 1 here",
                                              "norm_topk_prob is false there and true here",
                                              "num_key_value_heads is 2 there and 4 here",
                                              "quantization_config is set there and not set here",
                                              "mscale_all_dim is 0.5 there and 1.0 here",
                                              ::testing::StartsWith("attention_factor is 1.1557")));
  theirs["model_type"] = "llama";
  EXPECT_FALSE(exchange.options_for(theirs));
  EXPECT_EQ(names_and_config(*made_of(Value::map({{"model_type", "deepseek_v3"}})))
                .hf_config()
                .at("hidden_size"),
            Value(7168));
}

}  // namespace
}  // namespace titan
