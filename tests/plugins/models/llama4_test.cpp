// The llama4 plugin: names, initialisation by the rules of torchtitan v0.2.2, its sizes and those
// of the published models, exchange with Hugging Face, refusals. See llama4_attention_test.cpp for
// attention; tests/referee/llama4_referee.py checks the whole model.
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>
#include <titan/nn/attention.h>
#include <titan/nn/rope.h>

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

std::unique_ptr<Model> tiny_llama4(std::initializer_list<Value::Member> changed = {}) {
  Value options = Value::map({{"dim", 64},
                              {"n_layers", 4},
                              {"n_heads", 4},
                              {"n_kv_heads", 2},
                              {"vocab_size", 256},
                              {"hidden_dim", 48},
                              {"moe_hidden_dim", 40},
                              {"num_experts", 6}});
  for (const auto& [name, value] : changed) options[name] = value;
  return create<Model>("llama4", options, {.seq_len = 64});
}

std::unique_ptr<Model> flavor_of_llama4(const std::string& name) {
  return create<Model>("llama4", plugin_registry().flavor("llama4", name).preset,
                       {.seq_len = 4096});
}

const HfExchange& llama4_exchange(const Model& model) {
  return dynamic_cast<const HfExchange&>(model);
}

TEST(Llama4, HasExpertsInEverySecondLayer) {
  std::set<std::string> expected = {"tok_embeddings.weight", "norm.weight", "output.weight"};
  for (const char* layer : {"layers.0.", "layers.1.", "layers.2.", "layers.3."}) {
    for (const char* name : {"attention.wq", "attention.wk", "attention.wv", "attention.wo",
                             "attention_norm", "ffn_norm"})
      expected.insert(std::string(layer) + name + ".weight");
    const bool has_experts = (layer[7] - '0') % 2 == 1;
    for (const char* name : {"w1", "w2", "w3"}) {
      expected.insert(layer + std::string(has_experts ? "moe.shared_experts." : "feed_forward.") +
                      name + ".weight");
      if (has_experts) expected.insert(layer + std::string("moe.experts.") + name);
    }
    if (!has_experts) continue;
    expected.insert(layer + std::string("moe.router.gate.weight"));
    expected.insert(layer + std::string("moe.expert_bias"));
  }
  const auto model = tiny_llama4({{"load_balance_coeff", 1e-3}});
  ModelPart part(model->build());
  std::set<std::string> names;
  for (const nn::Parameter* p : part.parameters()) {
    names.insert(p->name());
    EXPECT_EQ(p->is_state(), p->name().ends_with("expert_bias"));
  }
  EXPECT_EQ(names, expected);
}

/// By layers 0 to 7: rotated (R) or not, and the chunk size in tokens.
std::vector<std::string> attention_of(const Model& model) {
  std::vector<std::string> found;
  ModelPart part(model.build());
  part.visit_modules([&](const std::string&, nn::Module& module) {
    auto* attention = dynamic_cast<nn::Attention*>(&module);
    if (!attention || found.size() == 8) return;
    found.push_back(std::string(attention->rope() ? "R" : "") +
                    (attention->core().rule()->needs_places() ? "c" : "") +
                    attention->input_kernel_owners().text());
  });
  return found;
}

TEST(Llama4, LeavesOutPositionsWhereEachKindOfItDoes) {
  EXPECT_THAT(attention_of(*flavor_of_llama4("17bx16e")),
              ElementsAre("R", "R", "R", "R", "R", "R", "R", "R"));
  EXPECT_THAT(attention_of(*flavor_of_llama4("17bx128e_irope")),
              ElementsAre("", "Rc", "Rc", "Rc", "", "Rc", "Rc", "Rc"));
  const std::string temperature = "the temperature of queries around it";
  EXPECT_THAT(attention_of(*flavor_of_llama4("Maverick")),
              ElementsAre("Rc", "Rc", "Rc", temperature, "Rc", "Rc", "Rc", temperature));
  const std::string norm = "Rcthe norm of queries and keys around it";
  EXPECT_THAT(attention_of(*flavor_of_llama4("Scout")),
              ElementsAre(norm, norm, norm, temperature, norm, norm, norm, temperature));
  EXPECT_THAT(attention_of(*tiny_llama4({{"every_n_layers_nope", 2}, {"attention_chunk_size", 0}})),
              ElementsAre("", "R", "", "R"));
  EXPECT_THAT(attention_of(*tiny_llama4({{"attention_chunk_size", 16}, {"n_layers", 2}})),
              ElementsAre("Rc", "Rc"));
}

/// Sizes of torchtitan v0.2.2, and GFLOP per token at 4096 by its formula.
struct PublishedLlama4 {
  const char* flavor;
  int64_t num_parameters, num_active;
  double full_at_4096;
};
constexpr int64_t kScout = 107'769'861'120, kScoutActive = 17'172'894'720,
                  kMaverick = 400'711'848'960, kMaverickActive = 17'184'691'200;
const PublishedLlama4 kPublishedLlama4[] = {
    {"debugmodel", 15'017'216, 6'759'680, 0.113},
    {"debugmodel_irope", 15'017'216, 6'759'680, 0.113},
    {"17bx16e", kScout, kScoutActive, 108.910},
    {"17bx16e_irope", kScout, kScoutActive, 108.910},
    {"Scout", kScout, kScoutActive, 108.910},
    {"17bx128e", kMaverick, kMaverickActive, 108.981},
    {"17bx128e_irope", kMaverick, kMaverickActive, 108.981},
    {"Maverick", kMaverick, kMaverickActive, 108.981},
};

TEST(Llama4, FlavorsHaveThePublishedSizes) {
  std::set<std::string> expected, found;
  for (const PublishedLlama4& row : kPublishedLlama4) {
    SCOPED_TRACE(row.flavor);
    expected.insert(std::string("llama4/") + row.flavor);
    const auto model = flavor_of_llama4(row.flavor);
    ModelPart part(model->build());
    EXPECT_EQ(part.num_parameters(), row.num_parameters);
    const Value config = llama4_exchange(*model).hf_config();
    const auto number = [&](const char* name) {
      return static_cast<double>(config.at(name).as_integer());
    };
    const Flops flops = model->flops_per_token(4096);
    EXPECT_NEAR(flops.full_attention / 1e9, row.full_at_4096, 0.0005);
    const double scores =
        6 * number("num_hidden_layers") * number("num_attention_heads") * number("head_dim") * 4096;
    const double looked_up = number("vocab_size") * number("hidden_size");
    EXPECT_DOUBLE_EQ(flops.full_attention,
                     6 * (static_cast<double>(row.num_active) - looked_up) + 2 * scores);
    EXPECT_DOUBLE_EQ(flops.causal_half, flops.full_attention - scores);
  }
  for (const std::string& name : core::Catalog({TITAN_PLUGIN_DIR}).names("flavor"))
    if (name.starts_with("llama4/")) found.insert(name);
  EXPECT_EQ(found, expected);
}

TEST(Llama4, WidthsFollowFromDimByTheRuleOfTorchtitan) {
  const auto widths = [](std::initializer_list<Value::Member> changed) {
    Value options = Value::map(
        {{"dim", 100}, {"n_layers", 2}, {"n_heads", 2}, {"vocab_size", 256}, {"multiple_of", 8}});
    for (const auto& [name, value] : changed) options[name] = value;
    const Value config =
        llama4_exchange(*create<Model>("llama4", options, {.seq_len = 64})).hf_config();
    return std::vector<int64_t>{config.at("intermediate_size_mlp").as_integer(),
                                config.at("intermediate_size").as_integer()};
  };
  EXPECT_THAT(widths({}), ElementsAre(272, 136));                             // 266, 133
  EXPECT_THAT(widths({{"ffn_dim_multiplier", 1.2}}), ElementsAre(320, 160));  // 319, 159
  EXPECT_THAT(widths({{"top_k", 2}}), ElementsAre(272, 88));                  // 266 / 3 = 88
  EXPECT_THAT(widths({{"auto_scale_hidden_dim", false}}), ElementsAre(272, 272));
  EXPECT_THAT(widths({{"hidden_dim", 30}, {"moe_hidden_dim", 20}}), ElementsAre(30, 20));
}

TEST(Llama4, InitialisesEachTensorByItsRule) {
  ModelPart part(tiny_llama4({{"load_balance_coeff", 1e-3}})->build());
  part.materialize(c10::kCPU, at::kFloat, 42);
  for (const nn::Parameter* p : part.parameters()) {
    const std::string& name = p->name();
    const at::Tensor values = p->value().detach().to(at::kDouble);
    if (name.find("norm") != std::string::npos || p->is_state()) {
      EXPECT_TRUE((values == (p->is_state() ? 0 : 1)).all().item<bool>()) << name;
      continue;
    }
    double std = 0.02;
    if (name == "tok_embeddings.weight") std = 1;
    if (name == "output.weight") std = 0.98658 / 8;  // dim^-0.5, truncated at three deviations
    for (const char* narrow : {".wo.", ".w2", ".w3", ".gate."})
      if (name.find(narrow) != std::string::npos)
        std = 0.02 / std::sqrt(2 * (name[std::string("layers.").size()] - '0' + 1.0));
    const auto n = static_cast<double>(values.numel());
    EXPECT_NEAR(values.mean().item<double>(), 0, 4.5 * std / std::sqrt(n)) << name;
    EXPECT_NEAR(values.std().item<double>() / std, 1, 4.5 / std::sqrt(2 * n)) << name;
  }
}

TEST(Llama4, ScalesWavelengthsOrLeavesThemAlone) {
  const auto plain = nn::rope_frequencies(128, {.theta = 500000});
  const auto scaled = nn::rope_frequencies(
      128, {.theta = 500000, .scaling_factor = 16, .low_freq_factor = 1, .high_freq_factor = 1});
  int kept = 0, divided = 0;
  for (size_t j = 0; j < plain.size(); ++j) {
    const bool is_long = 2 * M_PI / plain[j] > 8192;
    EXPECT_EQ(scaled[j], is_long ? plain[j] / 16 : plain[j]) << j;
    (is_long ? divided : kept) += 1;
  }
  EXPECT_TRUE(kept > 5 && divided > 5) << kept << " " << divided;
}

TEST(Llama4, StaysInDocumentsWhereItsAttentionIsOfThatKind) {
  EXPECT_FALSE(tiny_llama4()->isolates_documents());
  EXPECT_TRUE(tiny_llama4({{"attn_type", "varlen"}})->isolates_documents());
  EXPECT_TRUE(flavor_of_llama4("17bx16e_irope")->isolates_documents());
}

TEST(Llama4, RefusesDimensionsThatDoNotFit) {
  const auto message = [](std::initializer_list<Value::Member> changed) {
    const Error error = error_of([&] { tiny_llama4(changed); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return std::string(error.what());
  };
  EXPECT_TRUE(holds(message({{"top_k", 7}}), "model.top_k = 7 is above model.num_experts = 6"));
  EXPECT_TRUE(holds(message({{"n_heads", 5}}), "model.dim = 64 is not divisible by"));
  EXPECT_TRUE(holds(message({{"n_kv_heads", 3}}), "is not a multiple of model.n_kv_heads = 3"));
  EXPECT_TRUE(holds(message({{"head_dim", 5}}), "model.head_dim must be even"));
  EXPECT_TRUE(holds(message({{"every_n_layers_nope", 3}, {"nope_layer_offset", 3}}),
                    "model.nope_layer_offset = 3 is not below model.every_n_layers_nope = 3"));
  EXPECT_TRUE(holds(message({{"rope_scaling", Value::map({{"low_freq_factor", 2.0}})}}),
                    "is above model.rope_scaling.high_freq_factor"));
}

}  // namespace
}  // namespace titan
