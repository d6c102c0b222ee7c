// The gpt_oss plugin: names, published sizes, initial values, exchange with Hugging Face and
// torchtitan, names of MXFP4 tensors, refusals. tests/referee/gpt_oss_referee.py checks the model's
// results.
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

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

using titan::testing::create;
using titan::testing::error_of;
using titan::testing::holds;

std::unique_ptr<Model> make_gpt_oss(std::initializer_list<Value::Member> changed = {}) {
  Value options = Value::map({{"dim", 64},
                              {"n_layers", 2},
                              {"n_heads", 4},
                              {"n_kv_heads", 2},
                              {"head_dim", 32},
                              {"vocab_size", 256},
                              {"moe_hidden_dim", 96},
                              {"num_experts", 4},
                              {"top_k", 2},
                              {"load_balance_coeff", 1e-3}});
  for (const auto& [name, value] : changed) options[name] = value;
  return create<Model>("gpt_oss", options, {.seq_len = 64});
}

const HfExchange& gpt_oss_exchange(const Model& model) {
  return dynamic_cast<const HfExchange&>(model);
}

TEST(GptOss, NamesItsParameters) {
  ModelPart part(make_gpt_oss()->build());
  std::set<std::string> expected = {"tok_embeddings.weight", "norm.weight", "output.weight"};
  for (const char* layer : {"layers.0.", "layers.1."}) {
    for (const char* name : {"attention.sinks", "moe.router.gate.weight", "moe.router.gate.bias",
                             "moe.expert_bias", "attention_norm.weight", "ffn_norm.weight"})
      expected.insert(std::string(layer) + name);
    for (const char* name : {"wq", "wk", "wv", "wo"})
      for (const char* of : {".weight", ".bias"})
        expected.insert(std::string(layer) + "attention." + name + of);
    for (const char* name : {"w1", "w2", "w3"})
      for (const char* of : {"", "_bias"})
        expected.insert(std::string(layer) + "moe.experts." + name + of);
  }
  std::set<std::string> names;
  for (const nn::Parameter* p : part.parameters()) names.insert(p->name());
  EXPECT_EQ(names, expected);
  EXPECT_EQ(part.parameters().size(), expected.size());
}

/// Figures of torchtitan v0.2.2.
TEST(GptOss, HasThePublishedSizes) {
  const auto expect = [](const char* name, int64_t all, int64_t active, double gigaflops) {
    const Value preset = titan::testing::plugin_registry().flavor("gpt_oss", name).preset;
    const auto model = create<Model>("gpt_oss", preset, {.seq_len = 4096});
    ModelPart part(model->build());
    EXPECT_EQ(part.num_parameters(), all) << name;
    const int64_t embedding = part.parameters().front()->global_num_elements();
    const int64_t layers = static_cast<int64_t>(part.layers().size()) - 2;
    const Flops flops = model->flops_per_token(4096);
    EXPECT_NEAR(flops.full_attention / 1e9, gigaflops, 6e-4) << name;
    EXPECT_DOUBLE_EQ(flops.full_attention, 6.0 * static_cast<double>(active - embedding) +
                                               12.0 * static_cast<double>(layers) * 64 * 64 * 4096)
        << name;
  };
  expect("debugmodel", 183'397'920, 147'912'224, 1.384);
  expect("20b", 20'914'757'184, 4'187'440'704, 26.482);
  expect("120b", 116'829'156'672, 5'711'982'912, 38.045);
}

TEST(GptOss, InitialisesEachTensorByItsRule) {
  ModelPart part(make_gpt_oss()->build());
  part.materialize(c10::kCPU, at::kFloat, 42);
  for (const nn::Parameter* p : part.parameters()) {
    const std::string& name = p->name();
    const at::Tensor values = p->value().detach().to(at::kDouble);
    if (name.find("norm") != std::string::npos || p->is_state() || name.ends_with("gate.bias")) {
      EXPECT_TRUE((values == (name.find("norm") != std::string::npos ? 1 : 0)).all().item<bool>())
          << name;
      continue;
    }
    double std = 1;  // of the embedding
    if (name == "output.weight") std = std::sqrt(1.0 / 64) * 0.98658;
    if (name.starts_with("layers."))
      std = 0.02 / std::sqrt(2 * (name[std::string("layers.").size()] - '0' + 1.0));
    const double n = static_cast<double>(values.numel());
    EXPECT_NEAR(values.mean().item<double>(), 0, 4.5 * std / std::sqrt(n)) << name;
    if (n > 16) {
      EXPECT_NEAR(values.std().item<double>() / std, 1, 4.5 / std::sqrt(2 * n)) << name;
    }
  }
}

TEST(GptOss, EverySecondLayerHasAWindow) {
  ModelPart part(make_gpt_oss({{"n_layers", 3}})->build());
  std::vector<bool> has_window;
  part.visit_modules([&](const std::string&, nn::Module& module) {
    if (auto* attention = dynamic_cast<nn::Attention*>(&module)) {
      has_window.push_back(attention->core().rule()->needs_places());
      EXPECT_TRUE(attention->core().rule()->sinks().defined());
    }
  });
  EXPECT_EQ(has_window, (std::vector<bool>{true, false, true}));
}

TEST(GptOss, TakesExpertsInBf16AndInMxfp4) {
  const auto model = make_gpt_oss();
  std::vector<std::string> theirs_of_w3;
  std::set<std::string> scales;
  for (const auto& rule : gpt_oss_exchange(*model).name_rules(Naming::hugging_face)) {
    if (rule.ours == "layers.1.moe.experts.w3") theirs_of_w3.push_back(rule.theirs);
    if (!rule.scales.empty()) scales.insert(rule.scales);
  }
  EXPECT_EQ(theirs_of_w3,
            (std::vector<std::string>{"model.layers.1.mlp.experts.gate_up_proj",
                                      "model.layers.1.mlp.experts.gate_up_proj_blocks"}));
  EXPECT_TRUE(scales.contains("model.layers.0.mlp.experts.down_proj_scales"));
  std::set<std::string> torchtitan;
  for (const auto& rule : gpt_oss_exchange(*model).name_rules(Naming::torchtitan))
    torchtitan.insert(rule.theirs);
  EXPECT_TRUE(torchtitan.contains("layers.1.moe.experts.mlp1_weight"));
  EXPECT_TRUE(torchtitan.contains("layers.0.attention.sinks"));
  EXPECT_TRUE(gpt_oss_exchange(*model).name_rules(Naming::meta).empty());
}

TEST(GptOss, MakesItselfOfWhatItTellsHuggingFace) {
  const auto model = make_gpt_oss({{"rope_factor", 8.0}, {"norm_eps", 1e-6}, {"beta_fast", 16.0}});
  Value theirs = gpt_oss_exchange(*model).hf_config();
  const std::optional<Value> options = gpt_oss_exchange(*model).options_for(theirs);
  ASSERT_TRUE(options);
  const auto again = create<Model>("gpt_oss", *options, {.seq_len = 64});
  EXPECT_EQ(gpt_oss_exchange(*again).hf_config(), theirs);
  EXPECT_TRUE(gpt_oss_exchange(*model).config_differences(theirs).empty());
  theirs["num_experts_per_tok"] = 1;
  theirs["layer_types"] = Value::list({"full_attention", "full_attention"});
  theirs["rope_scaling"] = Value::map({{"rope_type", "yarn"}, {"factor", 32.0}});
  EXPECT_GE(gpt_oss_exchange(*model).config_differences(theirs).size(), 3u);
  theirs["model_type"] = "mixtral";
  EXPECT_FALSE(gpt_oss_exchange(*model).options_for(theirs));
}

TEST(GptOss, RefusesDimensionsThatDoNotFit) {
  const auto message = [](std::initializer_list<Value::Member> changed) {
    const Error error = error_of([&] { make_gpt_oss(changed)->build(); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return std::string(error.what());
  };
  EXPECT_TRUE(holds(message({{"top_k", 5}}), "model.top_k = 5 is above model.num_experts = 4"));
  EXPECT_TRUE(holds(message({{"n_kv_heads", 3}}), "is not a multiple of model.n_kv_heads = 3"));
  EXPECT_TRUE(holds(message({{"head_dim", 5}}), "model.head_dim must be even"));
  EXPECT_TRUE(holds(message({{"beta_fast", 1.0}, {"beta_slow", 64.0}}), "leaves no ramp"));
}

}  // namespace
}  // namespace titan
