// The mixtral plugin: names, published sizes, initial values, exchange with Hugging Face, refusals.
// tests/referee/mixture_referee.py checks the model's results.
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>
#include <titan/nn/moe.h>

#include "core/plugin/registry.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/registry.h"

namespace titan::mixtral_test {
namespace {

using titan::testing::create;
using titan::testing::error_of;
using titan::testing::holds;

std::unique_ptr<Model> make_mixtral(std::initializer_list<Value::Member> changed = {}) {
  Value options = Value::map({{"dim", 128},
                              {"n_layers", 2},
                              {"n_heads", 4},
                              {"n_kv_heads", 2},
                              {"vocab_size", 256},
                              {"hidden_dim", 96},
                              {"num_experts", 4}});
  for (const auto& [name, value] : changed) options[name] = value;
  return create<Model>("mixtral", options, {.seq_len = 64});
}

std::unique_ptr<Model> flavor(const std::string& name) {
  const Value preset = titan::testing::plugin_registry().flavor("mixtral", name).preset;
  return create<Model>("mixtral", preset, {.seq_len = 4096});
}

TEST(Mixtral, NamesItsParameters) {
  ModelPart part(make_mixtral({{"load_balance_coeff", 1e-3}})->build());
  std::set<std::string> expected = {"tok_embeddings.weight", "norm.weight", "output.weight"};
  for (const char* layer : {"layers.0.", "layers.1."})
    for (const char* name :
         {"attention.wq.weight", "attention.wk.weight", "attention.wv.weight",
          "attention.wo.weight", "moe.router.gate.weight", "moe.expert_bias", "moe.experts.w1",
          "moe.experts.w2", "moe.experts.w3", "attention_norm.weight", "ffn_norm.weight"})
      expected.insert(std::string(layer) + name);
  std::set<std::string> names;
  for (const nn::Parameter* p : part.parameters()) {
    names.insert(p->name());
    EXPECT_EQ(p->is_state(), p->name().ends_with("expert_bias"));
  }
  EXPECT_EQ(names, expected);
  EXPECT_EQ(part.parameters().size(), expected.size());
}

/// N as transformers counts the published models; FLOPs by the parameters active for a token.
TEST(Mixtral, HasThePublishedSizes) {
  const auto expect = [](const char* name, int64_t all, int64_t active, double attention) {
    const auto model = flavor(name);
    ModelPart part(model->build());
    EXPECT_EQ(part.num_parameters(), all) << name;
    const int64_t embedding = part.parameters().front()->global_num_elements();
    const Flops flops = model->flops_per_token(4096);
    EXPECT_DOUBLE_EQ(flops.full_attention,
                     6.0 * static_cast<double>(active - embedding) + attention)
        << name;
    EXPECT_DOUBLE_EQ(flops.causal_half,
                     6.0 * static_cast<double>(active - embedding) + attention / 2);
  };
  expect("8x7B", 46'702'792'704, 12'879'925'248, 12.0 * 32 * 32 * 128 * 4096);
  expect("8x22B", 140'620'634'112, 39'152'031'744, 12.0 * 56 * 48 * 128 * 4096);
  expect("debugmodel", 14'428'416, 4'991'232, 12.0 * 4 * 8 * 32 * 4096);
}

TEST(Mixtral, InitialisesEachTensorByItsRule) {
  ModelPart part(make_mixtral({{"load_balance_coeff", 1e-3}})->build());
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
    if (name == "output.weight") std = std::sqrt(1.0 / 128) * 0.98658;
    for (const char* narrow : {".wo.", ".w2", ".w3", ".gate."})
      if (name.find(narrow) != std::string::npos)
        std = 0.02 / std::sqrt(2 * (name[std::string("layers.").size()] - '0' + 1.0));
    const double n = static_cast<double>(values.numel());
    EXPECT_NEAR(values.mean().item<double>(), 0, 4.5 * std / std::sqrt(n)) << name;
    EXPECT_NEAR(values.std().item<double>() / std, 1, 4.5 / std::sqrt(2 * n)) << name;
  }
}

TEST(Mixtral, MapsEveryWeightToHuggingFaceOnce) {
  const auto model = make_mixtral({{"load_balance_coeff", 1e-3}});
  ModelPart part(model->build());
  const auto& exchange = dynamic_cast<const HfExchange&>(*model);
  std::map<std::string, size_t> ours;
  std::set<std::string> theirs;
  const auto rules = exchange.name_rules(Naming::hugging_face);
  for (const auto& rule : rules) ++ours[rule.ours], theirs.insert(rule.theirs);
  EXPECT_EQ(theirs.size(), rules.size());
  for (const nn::Parameter* p : part.parameters()) {
    const size_t expected = p->is_state()                                      ? 0u
                            : p->name().find("experts.w") != std::string::npos ? 4u
                                                                               : 1u;
    EXPECT_EQ(ours.contains(p->name()) ? ours.at(p->name()) : 0u, expected) << p->name();
  }
  EXPECT_TRUE(theirs.contains("model.layers.1.block_sparse_moe.experts.3.w2.weight"));
  EXPECT_TRUE(theirs.contains("model.layers.0.block_sparse_moe.gate.weight"));
  EXPECT_TRUE(exchange.name_rules(Naming::meta).empty());
}

TEST(Mixtral, MakesItselfOfWhatItTellsHuggingFace) {
  const auto model =
      make_mixtral({{"top_k", 3}, {"norm_eps", 1e-6}, {"enable_weight_tying", true}});
  const auto& exchange = dynamic_cast<const HfExchange&>(*model);
  Value theirs = exchange.hf_config();
  const std::optional<Value> options = exchange.options_for(theirs);
  ASSERT_TRUE(options);
  const auto again = create<Model>("mixtral", *options, {.seq_len = 64});
  EXPECT_EQ(dynamic_cast<const HfExchange&>(*again).hf_config(), theirs);
  EXPECT_TRUE(exchange.config_differences(theirs).empty());
  theirs["num_experts_per_tok"] = 2;
  theirs["sliding_window"] = 4096;
  EXPECT_EQ(exchange.config_differences(theirs).size(), 2u);
  theirs["model_type"] = "llama";
  EXPECT_FALSE(exchange.options_for(theirs));
}

TEST(Mixtral, RefusesDimensionsThatDoNotFit) {
  const auto message = [](std::initializer_list<Value::Member> changed) {
    const Error error = error_of([&] { make_mixtral(changed); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return std::string(error.what());
  };
  EXPECT_TRUE(holds(message({{"top_k", 5}}), "model.top_k = 5 is above model.num_experts = 4"));
  EXPECT_TRUE(holds(message({{"n_heads", 5}}), "model.dim = 128 is not divisible by"));
  EXPECT_TRUE(holds(message({{"n_kv_heads", 3}}), "is not a multiple of model.n_kv_heads = 3"));
  EXPECT_TRUE(holds(message({{"head_dim", 5}}), "model.head_dim must be even"));
}

}  // namespace
}  // namespace titan::mixtral_test
