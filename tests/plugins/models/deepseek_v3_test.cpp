// The deepseek_v3 plugin: names, sizes and FLOPs of torchtitan v0.2.2, initial values, exchange
// with the config.json files that DeepSeek published, refusals. A formula checks that generation
// from latents equals the attention of training. tests/referee/deepseek_referee.py checks the
// model's results.
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>
#include <titan/nn/attention_layer.h>
#include <titan/nn/kv_cache.h>
#include <titan/nn/linear.h>
#include <titan/nn/parameter.h>

#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/models/deepseek_v3_fixture.h"
#include "tests/plugins/registry.h"

namespace titan {
namespace {

using titan::testing::create;
using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::names_and_config;
using titan::testing::tiny_deepseek;
using titan::testing::tiny_v3;

std::set<std::string> names_of_parameters(const Model& model) {
  std::set<std::string> names;
  ModelPart part(model.build());
  for (const nn::Parameter* p : part.parameters()) names.insert(p->name());
  return names;
}

std::set<std::string> expected_names(const std::vector<std::string>& queries) {
  std::set<std::string> expected = {"tok_embeddings.weight", "norm.weight", "output.weight"};
  for (const char* layer : {"layers.0.", "layers.1.", "layers.2."}) {
    std::vector<std::string> names = {"attention.wkv_a.weight", "attention.kv_norm.weight",
                                      "attention.wkv_b.weight", "attention.wo.weight",
                                      "attention_norm.weight",  "ffn_norm.weight"};
    for (const std::string& query : queries) names.push_back("attention." + query + ".weight");
    for (const char* name : {"w1", "w2", "w3"})
      if (layer[7] == '0') {
        names.push_back(std::string("feed_forward.") + name + ".weight");
      } else {
        names.push_back(std::string("moe.experts.") + name);
        names.push_back(std::string("moe.shared_experts.") + name + ".weight");
      }
    if (layer[7] != '0')
      for (const char* name : {"moe.router.gate.weight", "moe.expert_bias"}) names.push_back(name);
    for (const std::string& name : names) expected.insert(layer + name);
  }
  return expected;
}

TEST(DeepseekV3, HasTheNamesOfTorchtitan) {
  EXPECT_EQ(names_of_parameters(*tiny_deepseek()), expected_names({"wq"}));
  EXPECT_EQ(names_of_parameters(*tiny_v3()), expected_names({"wq_a", "q_norm", "wq_b"}));
  for (const auto& model : {tiny_deepseek(), tiny_v3()}) {
    std::set<std::string> ours;
    for (const auto& rule : names_and_config(*model).name_rules(Naming::torchtitan)) {
      ours.insert(rule.ours);
      EXPECT_EQ(rule.num_rotary_heads, 0) << rule.ours;
      const bool is_newer = rule.theirs == "lm_head.weight";
      EXPECT_EQ(rule.theirs, is_newer ? "lm_head.weight" : rule.ours);
    }
    EXPECT_EQ(ours, names_of_parameters(*model));
    EXPECT_TRUE(names_and_config(*model).name_rules(Naming::meta).empty());
  }
}

/// Figures of torchtitan v0.2.2.
TEST(DeepseekV3, FlavorsHaveThePublishedSizes) {
  std::set<std::string> found, expected;
  const auto expect = [&](const char* name, int64_t all, int64_t active, double gigaflops,
                          double heads_width) {
    SCOPED_TRACE(name);
    expected.insert(std::string("deepseek_v3/") + name);
    const Value preset = titan::testing::plugin_registry().flavor("deepseek_v3", name).preset;
    const auto model = create<Model>("deepseek_v3", preset, {.seq_len = 4096});
    ModelPart part(model->build());
    EXPECT_EQ(part.num_parameters(), all);
    const int64_t embedding = part.parameters().front()->global_num_elements();
    const double pairs = 6.0 * static_cast<double>(part.layers().size() - 2) * heads_width * 4096;
    const Flops flops = model->flops_per_token(4096);
    EXPECT_NEAR(flops.full_attention / 1e9, gigaflops, 5e-4);
    EXPECT_DOUBLE_EQ(flops.full_attention, 6.0 * static_cast<double>(active - embedding) + pairs);
    EXPECT_DOUBLE_EQ(flops.causal_half, flops.full_attention - pairs / 2);
  };
  expect("debugmodel", 33'014'016, 28'098'816, 0.920, 16 * 320);
  expect("debugmodel_flex_attn", 33'014'016, 28'098'816, 0.920, 16 * 320);
  expect("16B", 15'706'484'224, 2'661'150'208, 18.106, 16 * 320);
  expect("236B", 235'741'434'880, 21'375'800'320, 185.507, 128 * 320);
  expect("671B", 671'026'404'352, 37'552'282'624, 281.158, 128 * 320);
  const core::Catalog catalog({TITAN_PLUGIN_DIR});
  for (const std::string& name : catalog.names("flavor"))
    if (name.starts_with("deepseek_v3/")) found.insert(name);
  EXPECT_EQ(found, expected);
}

TEST(DeepseekV3, InitialisesEachTensorByItsRule) {
  ModelPart part(tiny_v3()->build());
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
    if (name == "output.weight") std = std::sqrt(1.0 / 64) * 0.98658;
    for (const char* narrow : {".wo.", ".w2", ".w3", ".gate."})
      if (name.find(narrow) != std::string::npos)
        std = 0.02 / std::sqrt(2 * (name[std::string("layers.").size()] - '0' + 1.0));
    const double n = static_cast<double>(values.numel());
    EXPECT_NEAR(values.mean().item<double>(), 0, 4.5 * std / std::sqrt(n)) << name;
    EXPECT_NEAR(values.std().item<double>() / std, 1, 4.5 / std::sqrt(2 * n)) << name;
  }
}

TEST(DeepseekV3, MapsEveryWeightToHuggingFaceOnce) {
  for (const bool is_v3 : {false, true}) {
    const auto model = is_v3 ? tiny_v3() : tiny_deepseek();
    ModelPart part(model->build());
    std::map<std::string, size_t> ours;
    std::set<std::string> theirs;
    const auto rules = names_and_config(*model).name_rules(Naming::hugging_face);
    for (const auto& rule : rules) {
      ++ours[rule.ours], theirs.insert(rule.theirs);
      EXPECT_EQ(rule.scales, rule.theirs + "_scale_inv");
      EXPECT_EQ(rule.num_rotary_heads, 0);
    }
    EXPECT_EQ(theirs.size(), rules.size());
    for (const nn::Parameter* p : part.parameters()) {
      // a DeepSeek-V2 has no parameter for the bias
      const size_t expected = p->name().find(".experts.w") != std::string::npos ? 8u
                              : p->is_state() && !is_v3                         ? 0u
                                                                                : 1u;
      EXPECT_EQ(ours.contains(p->name()) ? ours.at(p->name()) : 0u, expected) << p->name();
    }
    for (const char* name : {"mlp.experts.7.down_proj.weight", "mlp.shared_experts.up_proj.weight",
                             "mlp.gate.weight", "self_attn.kv_a_proj_with_mqa.weight",
                             "self_attn.kv_a_layernorm.weight", "self_attn.kv_b_proj.weight"})
      EXPECT_TRUE(theirs.contains(std::string("model.layers.2.") + name)) << name;
    EXPECT_TRUE(theirs.contains("model.layers.0.mlp.gate_proj.weight"));
    EXPECT_EQ(theirs.contains("model.layers.1.mlp.gate.e_score_correction_bias"), is_v3);
    EXPECT_EQ(theirs.contains("model.layers.1.self_attn.q_a_layernorm.weight"), is_v3);
    EXPECT_EQ(theirs.contains("model.layers.1.self_attn.q_proj.weight"), !is_v3);
  }
}

TEST(DeepseekV3, PassesOverTheLayerThatPredictsFurther) {
  const auto model = tiny_v3();
  const auto names = names_and_config(*model).ignored_names(Naming::hugging_face);
  const std::set<std::string> ignored(names.begin(), names.end());
  for (const char* name :
       {"eh_proj.weight", "enorm.weight", "shared_head.head.weight", "embed_tokens.weight",
        "self_attn.kv_b_proj.weight_scale_inv", "mlp.experts.7.gate_proj.weight",
        "mlp.gate.e_score_correction_bias", "input_layernorm.weight"})
    EXPECT_TRUE(ignored.contains(std::string("model.layers.3.") + name)) << name;
  for (const std::string& name : names)
    EXPECT_TRUE(name == "rotary_emb.inv_freq" || name.starts_with("model.layers.3.")) << name;
  const auto v2 = names_and_config(*tiny_deepseek()).ignored_names(Naming::hugging_face);
  EXPECT_EQ(v2.size(), 1u);
}

at::Tensor logits_of(ModelPart& part, const Batch& batch) {
  const at::NoGradGuard no_grad;
  return part.forward(at::Tensor(), batch);
}

at::Tensor row_of_tokens(int64_t count) {
  return (at::arange(count, at::TensorOptions().dtype(at::kLong)) * 37 % 256).unsqueeze(0);
}

TEST(DeepseekV3, StretchesPositionsBeyondTheOriginalLengthOrAlways) {
  const auto logits = [](std::initializer_list<Value::Member> options, int64_t seq_len) {
    ModelPart part(tiny_deepseek(options, seq_len)->build());
    part.materialize(c10::kCPU, at::kFloat, 7);
    return logits_of(part, {.tokens = row_of_tokens(32)});
  };
  const at::Tensor plain = logits({{"rope_factor", 1.0}}, 64);
  EXPECT_TRUE(logits({{"original_seq_len", 64}}, 64).equal(plain));
  const at::Tensor stretched = logits({{"original_seq_len", 64}}, 65);
  EXPECT_FALSE(stretched.equal(plain));
  EXPECT_TRUE(logits({{"original_seq_len", 64}, {"yarn", "always"}}, 8).equal(stretched));
  EXPECT_TRUE(names_and_config(*tiny_deepseek()).hf_config().at("rope_scaling").is_null());
  const Value scaling = names_and_config(*tiny_deepseek({}, 4097)).hf_config().at("rope_scaling");
  EXPECT_EQ(scaling.at("factor"), Value(40.0));
}

/// Tokens one by one, after a prompt in two pieces, equal the whole row at once.
TEST(DeepseekV3, GeneratesFromLatentsWhatTrainingComputes) {
  for (const auto& model :
       {tiny_v3({{"original_seq_len", 32}}), tiny_deepseek({{"v_head_dim", 48}})}) {
    ModelPart part(model->build());
    part.materialize(c10::kCPU, at::kDouble, 7);
    const int64_t count = 17;
    const at::Tensor tokens = row_of_tokens(count);
    const at::Tensor expected = logits_of(part, {.tokens = tokens});
    const auto cache = std::make_shared<nn::KvCache>(1, count);
    std::vector<at::Tensor> found;
    for (const auto& [first, size] : {std::pair(0, 5), {5, 8}, {13, 1}, {14, 1}, {15, 2}}) {
      cache->begin({{.slot = 0, .start = first, .first = 0, .count = size}});
      Batch batch = {.tokens = tokens.narrow(1, first, size)};
      batch.positions =
          at::arange(first, first + size, at::TensorOptions().dtype(at::kLong)).unsqueeze(0);
      batch.num_positions = count;
      batch.kv_cache = cache;
      found.push_back(logits_of(part, batch));
    }
    const double error = (at::cat(found, 1) - expected).abs().max().item<double>();
    EXPECT_LT(error, 1e-12);
    EXPECT_GT(expected.abs().max().item<double>(), 0.5);
  }
}

TEST(DeepseekV3, KeepsWhatEveryHeadReadsWhereAnotherComputesInItsProjection) {
  ModelPart part(tiny_deepseek()->build());
  part.materialize(c10::kCPU, at::kDouble, 7);
  int64_t num_layers = 0;
  struct Doubled final : nn::LinearKernel {
    at::Tensor matmul(const at::Tensor& x, nn::Parameter& weight) override {
      return 2 * x.matmul(weight.value().t());
    }
  };
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    if (!path.ends_with("wkv_b")) return;
    dynamic_cast<nn::Linear&>(module).set_kernel("a test", std::make_unique<Doubled>());
    ++num_layers;
  });
  EXPECT_EQ(num_layers, 3);
  const at::Tensor tokens = row_of_tokens(9);
  const at::Tensor expected = logits_of(part, {.tokens = tokens});
  const auto cache = std::make_shared<nn::KvCache>(1, 9);
  cache->begin({{.slot = 0, .start = 0, .first = 0, .count = 9}});
  Batch batch = {.tokens = tokens};
  batch.kv_cache = cache;
  EXPECT_LT((logits_of(part, batch) - expected).abs().max().item<double>(), 1e-12);
}

TEST(DeepseekV3, RefusesDimensionsThatDoNotFit) {
  const auto message = [](std::initializer_list<Value::Member> changed) {
    const Error error = error_of([&] { tiny_deepseek(changed)->build(); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return std::string(error.what());
  };
  EXPECT_TRUE(holds(message({{"top_k", 9}}), "model.top_k = 9 is above model.num_experts = 8"));
  EXPECT_TRUE(holds(message({{"qk_rope_head_dim", 7}}), "model.qk_rope_head_dim must be even"));
  EXPECT_TRUE(holds(message({{"n_dense_layers", 4}}),
                    "model.n_dense_layers = 4 is above model.n_layers = 3"));
  EXPECT_TRUE(holds(message({{"num_expert_groups", 3}, {"num_limited_groups", 1}}),
                    "2 of 8 experts cannot be chosen from the best 1 of 3 groups"));
  EXPECT_TRUE(holds(message({{"yarn", "always"}, {"beta_fast", 0.1}, {"beta_slow", 64.0}}),
                    "leaves no ramp"));
}

TEST(DeepseekV3, StaysInDocumentsWhereItsAttentionIsOfThatKind) {
  EXPECT_FALSE(tiny_deepseek()->isolates_documents());
  EXPECT_TRUE(tiny_deepseek({{"attn_type", "flex"}})->isolates_documents());
}

}  // namespace
}  // namespace titan
