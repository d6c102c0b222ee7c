// The qwen3 plugin: names, initialisation by the rules of torchtitan v0.2.2, published sizes,
// exchange with Hugging Face, refusals. tests/referee/qwen3_referee.py checks the model's results,
// mixture_referee.py those with experts.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>
#include <titan/nn/attention.h>

#include "core/plugin/registry.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/registry.h"

namespace titan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using titan::testing::create;
using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::plugin_registry;
using Rules = std::vector<HfExchange::NameRule>;

std::unique_ptr<Model> tiny_qwen3(std::initializer_list<Value::Member> changed = {}) {
  Value options = Value::map({{"dim", 64},
                              {"n_layers", 2},
                              {"n_heads", 4},
                              {"n_kv_heads", 2},
                              {"head_dim", 32},
                              {"hidden_dim", 96},
                              {"vocab_size", 512}});
  for (const auto& [name, value] : changed) options[name] = value;
  return create<Model>("qwen3", options, {.seq_len = 128});
}

const HfExchange& exchange_of(const Model& model) {
  return dynamic_cast<const HfExchange&>(model);
}

std::set<std::string> parameter_names(const Model& model) {
  std::set<std::string> names;
  ModelPart part(model.build());
  for (const nn::Parameter* p : part.parameters()) names.insert(p->name());
  return names;
}

TEST(Qwen3, HasLlamasNamesAndNormsOfQueriesAndKeys) {
  std::set<std::string> expected = {"tok_embeddings.weight", "norm.weight", "output.weight"};
  for (const char* layer : {"layers.0.", "layers.1."})
    for (const char* name : {"attention.wq", "attention.wk", "attention.wv", "attention.wo",
                             "attention.q_norm", "attention.k_norm", "feed_forward.w1",
                             "feed_forward.w2", "feed_forward.w3", "attention_norm", "ffn_norm"})
      expected.insert(std::string(layer) + name + ".weight");
  EXPECT_EQ(parameter_names(*tiny_qwen3()), expected);
  expected.erase("output.weight");
  EXPECT_EQ(parameter_names(*tiny_qwen3({{"enable_weight_tying", true}})), expected);
}

TEST(Qwen3, InitialisesEachTensorByItsRule) {
  for (const bool is_tied : {false, true}) {
    ModelPart part(tiny_qwen3({{"enable_weight_tying", is_tied}})->build());
    part.materialize(c10::kCPU, at::kFloat, 42);
    for (const nn::Parameter* p : part.parameters()) {
      const std::string& name = p->name();
      const at::Tensor values = p->value().detach().to(at::kDouble);
      if (name.find("norm") != std::string::npos) {
        EXPECT_TRUE((values == 1).all().item<bool>()) << name;
        continue;
      }
      double std = 0.02;
      if (name == "tok_embeddings.weight") std = 1;
      if (name == "output.weight" || (is_tied && name == "tok_embeddings.weight"))
        std = 0.98658 / 8;  // dim^-0.5, truncated at three deviations
      for (const char* narrow : {".wo.", ".w2.", ".w3."})
        if (name.find(narrow) != std::string::npos)
          std = 0.02 / std::sqrt(2 * (name[std::string("layers.").size()] - '0' + 1.0));
      const auto n = static_cast<double>(values.numel());
      EXPECT_NEAR(values.mean().item<double>(), 0, 4.5 * std / std::sqrt(n)) << name;
      EXPECT_NEAR(values.std().item<double>() / std, 1, 4.5 / std::sqrt(2 * n)) << name;
    }
  }
}

std::unique_ptr<Model> tiny_mixture(std::initializer_list<Value::Member> changed = {}) {
  Value options = Value::map({{"dim", 64},
                              {"n_layers", 2},
                              {"n_heads", 4},
                              {"n_kv_heads", 2},
                              {"head_dim", 32},
                              {"vocab_size", 512},
                              {"num_experts", 6},
                              {"top_k", 2},
                              {"moe_hidden_dim", 24}});
  for (const auto& [name, value] : changed) options[name] = value;
  return create<Model>("qwen3", options, {.seq_len = 128});
}

TEST(Qwen3, HasExpertsInThePlaceOfEveryFeedForward) {
  std::set<std::string> expected = {"tok_embeddings.weight", "norm.weight", "output.weight"};
  for (const char* layer : {"layers.0.", "layers.1."}) {
    for (const char* name :
         {"attention.wq", "attention.wk", "attention.wv", "attention.wo", "attention.q_norm",
          "attention.k_norm", "attention_norm", "ffn_norm", "moe.router.gate"})
      expected.insert(std::string(layer) + name + ".weight");
    for (const char* name : {"w1", "w2", "w3"})
      expected.insert(std::string(layer) + "moe.experts." + name);
  }
  const auto model = tiny_mixture();
  EXPECT_EQ(parameter_names(*model), expected);
  std::set<std::string> ours, theirs;
  for (const auto& rule : exchange_of(*model).name_rules(Naming::hugging_face))
    ours.insert(rule.ours), theirs.insert(rule.theirs);
  EXPECT_EQ(ours, expected);
  EXPECT_EQ(theirs.size(), 3U + 2 * (9 + 3 * 6));
  EXPECT_TRUE(theirs.contains("model.layers.1.mlp.experts.5.down_proj.weight"));
  EXPECT_TRUE(theirs.contains("model.layers.0.mlp.gate.weight"));
  std::set<std::string> of_torchtitan;
  for (const auto& rule : exchange_of(*model).name_rules(Naming::torchtitan))
    of_torchtitan.insert(rule.ours);
  EXPECT_EQ(of_torchtitan, expected);
}

TEST(Qwen3, FindsItsExpertsInConfigs) {
  const auto model = tiny_mixture();
  const HfExchange& exchange = exchange_of(*model);
  const Value own = exchange.hf_config();
  EXPECT_EQ(own.at("model_type"), Value("qwen3_moe"));
  EXPECT_THAT(exchange.config_differences(own), IsEmpty());
  const Value options = exchange.options_for(own).value();
  EXPECT_EQ(exchange_of(*create<Model>("qwen3", options, {.seq_len = 128})).hf_config(), own);

  Value newer = own;  // transformers 5 uses Mixtral's key for the number of experts
  newer["num_local_experts"] = 6;
  Value without = Value::map();
  for (const auto& [name, value] : newer.as_map())
    if (name != "num_experts") without[name] = value;
  EXPECT_EQ(exchange.options_for(without)->at("num_experts"), Value(6));
  EXPECT_THAT(exchange.config_differences(without), IsEmpty());

  Value other = own;
  other["norm_topk_prob"] = false;
  other["decoder_sparse_step"] = 2;
  other["mlp_only_layers"] = Value::list({0});
  EXPECT_THAT(exchange.config_differences(other),
              ElementsAre("decoder_sparse_step is 2 there and 1 here",
                          "mlp_only_layers is [0] there and [] here",
                          "norm_topk_prob is false there and true here"));
  const Value silent = Value::map({{"model_type", "qwen3_moe"}, {"hidden_size", 1024}});
  EXPECT_EQ(exchange.options_for(silent)->at("head_dim"), Value(32));  // of 32 heads
  EXPECT_EQ(exchange.options_for(silent)->at("num_experts"), Value(128));
}

TEST(Qwen3, FlavorsWithExpertsHaveThePublishedSizes) {
  struct Row {
    const char* flavor;
    int64_t num_parameters, num_active;
    double full_at_4096;
  };
  for (const Row& row : {Row{"debugmodel_moe", 315'758'848, 51'517'696, 1.111},
                         Row{"30B-A3B", 30'532'122'624, 3'353'032'704, 27.915},
                         Row{"235B-A22B", 235'093'634'560, 22'190'763'520, 167.260}}) {
    SCOPED_TRACE(row.flavor);
    const auto model = create<Model>("qwen3", plugin_registry().flavor("qwen3", row.flavor).preset,
                                     {.seq_len = 2048});
    ModelPart part(model->build());
    EXPECT_EQ(part.num_parameters(), row.num_parameters);
    const Value config = exchange_of(*model).hf_config();
    const auto number = [&](const char* name) {
      return static_cast<double>(config.at(name).as_integer());
    };
    const Flops flops = model->flops_per_token(4096);
    EXPECT_NEAR(flops.full_attention / 1e9, row.full_at_4096, 0.0005);
    const double scores =
        6 * number("num_hidden_layers") * number("num_attention_heads") * 128 * 4096;
    const double looked_up = number("vocab_size") * number("hidden_size");
    EXPECT_DOUBLE_EQ(flops.full_attention,
                     6 * (static_cast<double>(row.num_active) - looked_up) + 2 * scores);
  }
}

/// Sizes of torchtitan v0.2.2. GFLOP per token at 4096 by its formula, but including the head of a
/// tied model: 6 N + 12 L H hd S, without the embedding if untied.
struct PublishedQwen3 {
  const char* flavor;
  int64_t num_parameters;
  double full_at_4096;
};
const PublishedQwen3 kPublishedQwen3[] = {
    {"debugmodel", 31'987'968, 0.997}, {"0.6B", 596'049'920, 6.395},
    {"1.7B", 1'720'574'976, 13.142},   {"4B", 4'022'468'096, 31.383},
    {"8B", 8'190'735'360, 52.658},     {"14B", 14'768'307'200, 94.009},
    {"32B", 32'762'123'264, 217.675},
};

TEST(Qwen3, FlavorsHaveThePublishedSizes) {
  const core::Catalog catalog({TITAN_PLUGIN_DIR});
  std::set<std::string> expected = {"qwen3/debugmodel_moe", "qwen3/30B-A3B", "qwen3/235B-A22B"};
  std::set<std::string> found;
  for (const PublishedQwen3& row : kPublishedQwen3) {
    SCOPED_TRACE(row.flavor);
    expected.insert(std::string("qwen3/") + row.flavor);
    const auto model = create<Model>("qwen3", plugin_registry().flavor("qwen3", row.flavor).preset,
                                     {.seq_len = 2048});
    ModelPart part(model->build());
    EXPECT_EQ(part.num_parameters(), row.num_parameters);
    const Value config = exchange_of(*model).hf_config();
    const auto number = [&](const char* name) {
      return static_cast<double>(config.at(name).as_integer());
    };
    EXPECT_EQ(config.at("head_dim"), Value(128));
    EXPECT_EQ(config.at("num_key_value_heads"), Value(8));
    const Flops flops = model->flops_per_token(4096);
    EXPECT_NEAR(flops.full_attention / 1e9, row.full_at_4096, 0.0005);
    // every weight except an embedding is multiplied by each token; norm weights count as well
    const double looked_up = config.at("tie_word_embeddings").as_boolean()
                                 ? 0
                                 : number("vocab_size") * number("hidden_size");
    const double scores =
        6 * number("num_hidden_layers") * number("num_attention_heads") * 128 * 4096;
    EXPECT_DOUBLE_EQ(flops.full_attention,
                     6 * (static_cast<double>(row.num_parameters) - looked_up) + 2 * scores);
    EXPECT_DOUBLE_EQ(flops.causal_half, flops.full_attention - scores);
  }
  for (const std::string& name : catalog.names("flavor"))
    if (name.starts_with("qwen3/")) found.insert(name);
  EXPECT_EQ(found, expected);
}

TEST(Qwen3, MapsEveryParameterToOthersOnce) {
  for (const bool is_tied : {false, true})
    for (const Naming naming : {Naming::hugging_face, Naming::torchtitan}) {
      const auto model = tiny_qwen3({{"enable_weight_tying", is_tied}});
      std::set<std::string> ours, theirs;
      const Rules rules = exchange_of(*model).name_rules(naming);
      for (const HfExchange::NameRule& rule : rules) {
        ours.insert(rule.ours), theirs.insert(rule.theirs);
        EXPECT_EQ(rule.num_rotary_heads, 0) << rule.ours;  // all rotate halves
      }
      EXPECT_EQ(ours, parameter_names(*model));
      EXPECT_EQ(theirs.size(), rules.size());
      const bool is_hf = naming == Naming::hugging_face;
      for (const char* name : {"q_norm", "k_norm"})
        EXPECT_TRUE(theirs.contains((is_hf ? "model.layers.1.self_attn." : "layers.1.attention.") +
                                    std::string(name) + ".weight"));
      EXPECT_TRUE(theirs.contains("lm_head.weight"));
      EXPECT_EQ(theirs.contains("output.weight"), !is_hf);
    }
  EXPECT_THAT(exchange_of(*tiny_qwen3()).name_rules(Naming::meta), IsEmpty());
}

TEST(Qwen3, FindsItselfInConfigsOfBothVersionsOfTransformers) {
  const auto model = tiny_qwen3({{"enable_weight_tying", true}});
  const HfExchange& exchange = exchange_of(*model);
  const Value own = exchange.hf_config();
  EXPECT_THAT(exchange.config_differences(own), IsEmpty());
  const Value options = exchange.options_for(own).value();
  EXPECT_EQ(exchange_of(*create<Model>("qwen3", options, {.seq_len = 128})).hf_config(), own);

  Value newer = own;  // transformers 5
  newer["rope_theta"] = Value();
  newer["rope_scaling"] = Value();
  newer["rope_parameters"] = Value::map({{"rope_type", "default"}, {"rope_theta", 2e6}});
  newer["layer_types"] = Value::list({"full_attention", "full_attention"});
  EXPECT_EQ(exchange.options_for(newer)->at("rope_theta"), Value(2e6));
  EXPECT_THAT(exchange.config_differences(newer),
              ElementsAre("rope_theta is 2e+06 there and 1e+06 here"));

  Value other = own;
  other["model_type"] = "qwen2";
  EXPECT_EQ(exchange.options_for(other), std::nullopt);
}

TEST(Qwen3, TakesWhatTransformersTakesWhereAConfigIsSilent) {
  const Value silent = Value::map(
      {{"model_type", "qwen3"}, {"num_key_value_heads", Value()}, {"num_attention_heads", 16}});
  const auto model = tiny_qwen3();
  const Value options = exchange_of(*model).options_for(silent).value();
  EXPECT_EQ(options.at("dim"), Value(4096));
  EXPECT_EQ(options.at("hidden_dim"), Value(22016));
  EXPECT_EQ(options.at("n_kv_heads"), Value(16));  // null, not absent
  EXPECT_EQ(options.at("head_dim"), Value(128));
  EXPECT_EQ(options.at("rope_theta"), Value(10000.0));
  EXPECT_EQ(options.at("max_position_embeddings"), Value(32768));
  const auto made = create<Model>("qwen3", options, {.seq_len = 128});
  EXPECT_THAT(exchange_of(*made).config_differences(silent), IsEmpty());
}

TEST(Qwen3, SaysWhichMembersOfAConfigItCannotFollow) {
  const auto model = tiny_qwen3();
  Value theirs = exchange_of(*model).hf_config();
  theirs["attention_bias"] = true;
  theirs["use_sliding_window"] = true;
  theirs["layer_types"] = Value::list({"full_attention", "sliding_attention"});
  theirs["num_key_value_heads"] = Value();
  theirs["rope_scaling"] = Value::map({{"rope_type", "yarn"}, {"factor", 4.0}});
  EXPECT_THAT(exchange_of(*model).config_differences(theirs),
              ElementsAre("num_key_value_heads is 4 there and 2 here",
                          "attention_bias is true there and false here",
                          "use_sliding_window is true there and false here",
                          "layer_types is [\"full_attention\",\"sliding_attention\"] there and not "
                          "set here",
                          "rope_type is \"yarn\" there and \"default\" here",
                          "factor is 4.0 there and not set here"));
}

TEST(Qwen3, RefusesDimensionsThatDoNotFit) {
  const auto message = [](std::initializer_list<Value::Member> changed) {
    const Error error = error_of([&] { tiny_qwen3(changed); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return std::string(error.what());
  };
  EXPECT_TRUE(holds(message({{"n_kv_heads", 3}}),
                    "model.n_heads = 4 is not a multiple of model.n_kv_heads = 3"));
  EXPECT_TRUE(holds(message({{"n_kv_heads", 8}}), "model.n_kv_heads = 8"));
  EXPECT_TRUE(holds(message({{"head_dim", 7}}), "model.head_dim must be even"));
  EXPECT_TRUE(
      holds(message({{"num_experts", 4}}), "model.top_k = 8 is above model.num_experts = 4"));
}

TEST(Qwen3, StaysInDocumentsWhereItsAttentionIsOfThatKind) {
  EXPECT_FALSE(tiny_qwen3()->isolates_documents());
  EXPECT_TRUE(tiny_qwen3({{"attn_type", "varlen"}})->isolates_documents());
}

}  // namespace
}  // namespace titan
