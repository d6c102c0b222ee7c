// How the llama4 plugin exchanges weights: name rules, and config.json of text models and
// multimodal models. tests/referee/llama4_referee.py checks the results.
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "core/plugin/registry.h"
#include "tests/plugins/registry.h"

namespace titan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using titan::testing::create;

/// Three layers, the second without positions and without experts.
std::unique_ptr<Model> model_to_exchange(std::initializer_list<Value::Member> changed = {}) {
  Value options = Value::map({{"dim", 64},
                              {"n_layers", 3},
                              {"n_heads", 4},
                              {"n_kv_heads", 2},
                              {"vocab_size", 256},
                              {"hidden_dim", 48},
                              {"moe_hidden_dim", 40},
                              {"num_experts", 6},
                              {"interleave_moe_layer_step", 2},
                              {"every_n_layers_nope", 3},
                              {"nope_layer_offset", 1},
                              {"attention_chunk_size", 24},
                              {"attn_temperature_tuning", true},
                              {"floor_scale", 16}});
  for (const auto& [name, value] : changed) options[name] = value;
  return create<Model>("llama4", options, {.seq_len = 64});
}

const HfExchange& exchanged(const Model& model) {
  return dynamic_cast<const HfExchange&>(model);
}

std::vector<HfExchange::NameRule> rules_of(const Model& model, Naming naming, const char* ours) {
  std::vector<HfExchange::NameRule> found;
  for (const auto& rule : exchanged(model).name_rules(naming))
    if (rule.ours == ours) found.push_back(rule);
  return found;
}

TEST(Llama4Exchange, NamesEveryWeightWithAndWithoutTheModelThatSeesImages) {
  const auto model = model_to_exchange({{"load_balance_coeff", 1e-3}});
  ModelPart part(model->build());
  std::map<std::string, int> ours;
  std::set<std::string> theirs;
  for (const auto& rule : exchanged(*model).name_rules(Naming::hugging_face))
    ++ours[rule.ours], theirs.insert(rule.theirs);
  for (const nn::Parameter* p : part.parameters())
    EXPECT_EQ(ours.contains(p->name()) ? ours.at(p->name()) : 0, p->is_state() ? 0 : 2)
        << p->name();
  for (const char* name :
       {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight",
        "model.layers.0.feed_forward.gate_proj.weight", "model.layers.1.feed_forward.router.weight",
        "model.layers.1.feed_forward.experts.gate_up_proj",
        "model.layers.1.feed_forward.experts.down_proj",
        "model.layers.1.feed_forward.shared_expert.up_proj.weight",
        "model.layers.2.self_attn.q_proj.weight"}) {
    EXPECT_TRUE(theirs.contains(name)) << name;
    EXPECT_TRUE(theirs.contains(std::string("language_model.") + name)) << name;
  }
  EXPECT_EQ(theirs.size(), 2U * (3 + 3 * 6 + 2 * 3 + 6));
}

TEST(Llama4Exchange, FindsGatesAndUpsInOneTensor) {
  const auto model = model_to_exchange();
  for (const auto& [ours, begin] :
       {std::pair("layers.1.moe.experts.w1", 0), {"layers.1.moe.experts.w3", 40}}) {
    const auto rule = rules_of(*model, Naming::hugging_face, ours).front();
    EXPECT_EQ(rule.theirs, "model.layers.1.feed_forward.experts.gate_up_proj");
    ASSERT_EQ(rule.of_theirs.size(), 1U);
    EXPECT_EQ(rule.of_theirs[0].dim, 2);
    EXPECT_EQ(rule.of_theirs[0].begin, begin);
    EXPECT_EQ(rule.of_theirs[0].size, 40);
    EXPECT_THAT(rule.order, ElementsAre(0, 2, 1));
  }
}

TEST(Llama4Exchange, FindsRotaryRowsInPairsOnBothSides) {
  const auto model = model_to_exchange();
  for (const Naming naming : {Naming::hugging_face, Naming::torchtitan}) {
    EXPECT_EQ(rules_of(*model, naming, "layers.0.attention.wq.weight")[0].num_rotary_heads, 4);
    EXPECT_EQ(rules_of(*model, naming, "layers.0.attention.wk.weight")[0].num_rotary_heads, 2);
    EXPECT_EQ(rules_of(*model, naming, "layers.0.attention.wv.weight")[0].num_rotary_heads, 0);
  }
}

TEST(Llama4Exchange, HasTorchtitansNamesAndNoneOfMeta) {
  const auto model = model_to_exchange({{"load_balance_coeff", 1e-3}});
  ModelPart part(model->build());
  std::set<std::string> own, named;
  for (const nn::Parameter* p : part.parameters()) own.insert(p->name());
  for (const auto& rule : exchanged(*model).name_rules(Naming::torchtitan)) named.insert(rule.ours);
  EXPECT_EQ(named, own);
  EXPECT_THAT(exchanged(*model).name_rules(Naming::meta), IsEmpty());
}

TEST(Llama4Exchange, HasNoPlaceForMoreSharedExpertsThanTransformers) {
  for (const int64_t shared : {0, 2}) {
    const auto model = model_to_exchange({{"num_shared_experts", shared}});
    EXPECT_THAT(exchanged(*model).name_rules(Naming::hugging_face), IsEmpty());
  }
}

TEST(Llama4Exchange, MakesItselfOfWhatItTellsHuggingFace) {
  for (const auto& model :
       {model_to_exchange(), model_to_exchange({{"use_qk_norm", true}, {"top_k", 3}}),
        model_to_exchange({{"rope_scaling", Value::map({{"scaling_factor", 16.0}})},
                           {"norm_eps", 1e-6},
                           {"enable_weight_tying", true}}),
        model_to_exchange({{"interleave_moe_layer_step", 1}, {"nope_layer_offset", 2}})}) {
    const HfExchange& exchange = exchanged(*model);
    const Value theirs = exchange.hf_config();
    const auto again =
        create<Model>("llama4", exchange.options_for(theirs).value(), {.seq_len = 64});
    EXPECT_EQ(exchanged(*again).hf_config(), theirs);
    EXPECT_THAT(exchange.config_differences(theirs), IsEmpty());
  }
}

/// All layers with positions and attention over whole rows, as in v0.2.2.
TEST(Llama4Exchange, SaysThatNoLayerAttendsInChunks) {
  Value options = Value::map({{"dim", 64}, {"n_layers", 3}, {"n_heads", 4}, {"vocab_size", 256}});
  const auto model = create<Model>("llama4", options, {.seq_len = 64});
  const HfExchange& exchange = exchanged(*model);
  const Value theirs = exchange.hf_config();
  EXPECT_EQ(theirs.at("no_rope_layers"), Value::list({1, 1, 1}));
  EXPECT_EQ(theirs.at("layer_types"),
            Value::list({"full_attention", "full_attention", "full_attention"}));
  EXPECT_EQ(theirs.at("attention_chunk_size"), theirs.at("max_position_embeddings"));
  const Value back = exchange.options_for(theirs).value();
  EXPECT_EQ(back.find("every_n_layers_nope"), nullptr);
  EXPECT_EQ(back.at("attention_chunk_size"), Value(0));
  const auto again = create<Model>("llama4", back, {.seq_len = 64});
  EXPECT_THAT(exchanged(*again).config_differences(theirs), IsEmpty());
}

Value with_images(const Value& text) {
  return Value::map({{"model_type", "llama4"},
                     {"architectures", Value::list({"Llama4ForConditionalGeneration"})},
                     {"text_config", text},
                     {"vision_config", Value::map({{"model_type", "llama4_vision_model"}})}});
}

TEST(Llama4Exchange, FindsTheTextModelOfOneThatSeesImages) {
  const auto model = model_to_exchange();
  const HfExchange& exchange = exchanged(*model);
  const Value text = exchange.hf_config();
  EXPECT_EQ(exchange.options_for(with_images(text)), exchange.options_for(text));
  EXPECT_THAT(exchange.config_differences(with_images(text)), IsEmpty());
  Value quantised = with_images(text);
  quantised["quantization_config"] = Value::map({{"quant_method", "fbgemm_fp8"}});
  EXPECT_THAT(exchange.config_differences(quantised),
              ElementsAre("quantization_config is set there and not set here"));
  Value other = text;
  other["model_type"] = "llama";
  EXPECT_FALSE(exchange.options_for(other));
}

TEST(Llama4Exchange, TakesWhatTransformersTakesWhereAConfigIsSilent) {
  const auto model = model_to_exchange();
  const Value silent = with_images(Value::map({{"num_key_value_heads", Value()}}));
  const Value options = exchanged(*model).options_for(silent).value();
  for (const auto& [name, value] : {Value::Member{"dim", 5120},
                                    {"hidden_dim", 16384},
                                    {"moe_hidden_dim", 8192},
                                    {"n_layers", 48},
                                    {"n_heads", 40},
                                    {"n_kv_heads", 40},
                                    {"num_experts", 16},
                                    {"interleave_moe_layer_step", 1},
                                    {"every_n_layers_nope", 4},
                                    {"nope_layer_offset", 3},
                                    {"attention_chunk_size", 8192},
                                    {"use_qk_norm", true},
                                    {"attn_temperature_tuning", true},
                                    {"rope_theta", 500000.0},
                                    {"max_position_embeddings", 131072}})
    EXPECT_EQ(options.at(name), value) << name;
  const auto made = create<Model>("llama4", options, {.seq_len = 64});
  EXPECT_THAT(exchanged(*made).config_differences(silent), IsEmpty());
}

TEST(Llama4Exchange, ReadsWhatEarlyFilesAndTransformers5Say) {
  const auto model = model_to_exchange();
  const HfExchange& exchange = exchanged(*model);
  Value theirs = exchange.hf_config();
  theirs["attn_temperature_tuning"] = 4;
  theirs["moe_layers"] = Value();
  theirs["layer_types"] = Value();
  theirs["no_rope_layers"] = Value::list({1, 0, 1, 1, 0, 1});  // of more layers than the model has
  theirs["rope_theta"] = Value();
  theirs["rope_scaling"] = Value();
  theirs["rope_parameters"] = Value::map({{"rope_type", "default"}, {"rope_theta", 500000.0}});
  EXPECT_THAT(exchange.config_differences(theirs), IsEmpty());
  EXPECT_EQ(exchange.options_for(theirs)->at("attn_temperature_tuning"), Value(true));
  theirs["attention_chunk_size"] = Value();
  EXPECT_EQ(exchange.options_for(theirs)->at("attention_chunk_size"), Value(0));
  theirs["rope_parameters"] = Value::map({{"rope_type", "llama3"},
                                          {"rope_theta", 1e4},
                                          {"factor", 16.0},
                                          {"low_freq_factor", 1.0},
                                          {"high_freq_factor", 1.0},
                                          {"original_max_position_embeddings", 8192}});
  const Value options = exchange.options_for(theirs).value();
  EXPECT_EQ(options.at("rope_theta"), Value(1e4));
  EXPECT_EQ(options.at("rope_scaling").at("scaling_factor"), Value(16.0));
  EXPECT_EQ(options.at("rope_scaling").at("high_freq_factor"), Value(1.0));
}

TEST(Llama4Exchange, SaysWhichMembersOfAConfigItCannotFollow) {
  const auto model = model_to_exchange();
  const HfExchange& exchange = exchanged(*model);
  Value theirs = exchange.hf_config();
  theirs["moe_layers"] = Value::list({0, 2});
  theirs["no_rope_layers"] = Value::list({0, 0, 1});
  theirs["attention_bias"] = true;
  theirs["attention_chunk_size"] = 32;
  EXPECT_THAT(exchange.config_differences(theirs),
              ElementsAre("moe_layers is [0,2] there and [1] here",
                          "no_rope_layers is [0,0,1] there and [1,0,1] here",
                          "attention_chunk_size is 32 there and 24 here",
                          "attention_bias is true there and false here"));
  const Value options = exchange.options_for(theirs).value();
  EXPECT_EQ(options.find("interleave_moe_layer_step"), nullptr);
  EXPECT_EQ(options.find("every_n_layers_nope"), nullptr);
}

}  // namespace
}  // namespace titan
