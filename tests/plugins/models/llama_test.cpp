// The llama plugin: names, initialisation by the rules of torchtitan v0.2.2, exchange with Hugging
// Face, refusals. tests/referee/llama_referee.py checks the model's results.
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/isfinite.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/registry.h"
#include "tests/sdk/nn/fake_group.h"

namespace titan {
namespace {

using titan::testing::create;
using titan::testing::error_of;
using titan::testing::fake_group;
using titan::testing::holds;
using titan::testing::same_bits;

std::unique_ptr<Model> make(std::initializer_list<Value::Member> changed = {}) {
  Value options = Value::map(
      {{"dim", 256}, {"n_layers", 3}, {"n_heads", 8}, {"n_kv_heads", 2}, {"vocab_size", 512}});
  for (const auto& [name, value] : changed) options[name] = value;
  return create<Model>("llama3", options, {.seq_len = 128});
}

std::vector<std::string> names_of(ModelPart& part) {
  std::vector<std::string> names;
  for (const nn::Parameter* p : part.parameters()) names.push_back(p->name());
  return names;
}

TEST(Llama, NamesLayersAndParametersAsMetaDoes) {
  ModelPart part(make({{"n_layers", 2}})->build());
  std::vector<std::string> layers;
  for (const Layer& layer : part.layers()) layers.push_back(layer.name);
  EXPECT_EQ(layers, (std::vector<std::string>{"tok_embeddings", "layers.0", "layers.1", "output"}));

  std::set<std::string> expected = {"tok_embeddings.weight", "norm.weight", "output.weight"};
  for (const char* layer : {"layers.0.", "layers.1."})
    for (const char* name :
         {"attention.wq", "attention.wk", "attention.wv", "attention.wo", "feed_forward.w1",
          "feed_forward.w2", "feed_forward.w3", "attention_norm", "ffn_norm"})
      expected.insert(std::string(layer) + name + ".weight");
  const auto names = names_of(part);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), expected);
  EXPECT_EQ(names.size(), expected.size());
}

/// The rules of torchtitan v0.2.2: mean 0 and this deviation; 0 = exactly one. Truncating at three
/// deviations narrows by 1.3 %.
double expected_std(const std::string& name, bool is_tied, bool by_depth) {
  if (name.find("norm") != std::string::npos) return 0;
  if (name == "output.weight" || (is_tied && name == "tok_embeddings.weight"))
    return std::sqrt(1.0 / 256) * 0.98658;
  if (name == "tok_embeddings.weight") return 1;
  const double layer = name[std::string("layers.").size()] - '0' + 1.0;
  for (const char* narrow : {".wo.", ".w2.", ".w3."})
    if (name.find(narrow) != std::string::npos) return 0.02 / std::sqrt(2 * (by_depth ? layer : 3));
  return 0.02;
}

TEST(Llama, InitialisesEachTensorByItsRule) {
  for (const bool is_tied : {false, true})
    for (const bool by_depth : {false, true}) {
      ModelPart part(make({{"enable_weight_tying", is_tied}, {"depth_init", by_depth}})->build());
      part.materialize(c10::kCPU, at::kFloat, 42);
      for (const nn::Parameter* p : part.parameters()) {
        const at::Tensor values = p->value().detach().to(at::kDouble);
        const double std = expected_std(p->name(), is_tied, by_depth),
                     n = static_cast<double>(values.numel());
        if (std == 0) {
          EXPECT_TRUE((values == 1).all().item<bool>()) << p->name();
          continue;
        }
        EXPECT_NEAR(values.mean().item<double>(), 0, 4.5 * std / std::sqrt(n)) << p->name();
        EXPECT_NEAR(values.std().item<double>() / std, 1, 4.5 / std::sqrt(2 * n)) << p->name();
        const double largest = values.abs().max().item<double>();
        if (p->name() == "output.weight") {
          EXPECT_LE(largest, 3.0 / 16 * (1 + 1e-7));
        } else if (p->name() != "tok_embeddings.weight") {
          EXPECT_GT(largest, 3.5 * std) << p->name();  // not truncated at three deviations
        }
      }
    }
}

TEST(Llama, InitialisesAPipelineStageAsTheWholeModel) {
  ModelPart whole(make()->build());
  whole.materialize(c10::kCPU, at::kFloat, 5);
  std::map<std::string, at::Tensor> expected;
  for (const nn::Parameter* p : whole.parameters()) expected[p->name()] = p->value();

  std::vector<Layer> layers = make()->build();
  layers.erase(layers.begin(),
               layers.begin() + 2);  // the embedding and the first block belong to another stage
  ModelPart stage(std::move(layers));
  for (nn::Parameter* p : stage.parameters()) p->shard_over(0, fake_group(1, 2));
  stage.materialize(c10::kCPU, at::kFloat, 5);
  EXPECT_EQ(stage.parameters().size(), 20u);
  for (const nn::Parameter* p : stage.parameters()) {
    const int64_t begin = p->slice().offsets[0];
    EXPECT_TRUE(same_bits(p->shard(), expected.at(p->name()).narrow(0, begin, p->slice().sizes[0])))
        << p->name();
  }
}

/// Every parameter has a rule, and no two rules are equal.
std::vector<HfExchange::NameRule> rules_of(const Model& model, Naming naming) {
  ModelPart part(model.build());
  std::set<std::string> ours, theirs;
  const auto rules = dynamic_cast<const HfExchange&>(model).name_rules(naming);
  for (const auto& rule : rules) ours.insert(rule.ours), theirs.insert(rule.theirs);
  const auto names = names_of(part);
  EXPECT_EQ(ours, std::set<std::string>(names.begin(), names.end()));
  EXPECT_EQ(theirs.size(), rules.size());
  return rules;
}

std::vector<std::string> theirs_of(const std::vector<HfExchange::NameRule>& rules,
                                   const std::string& ours) {
  std::vector<std::string> names;
  for (const auto& rule : rules)
    if (rule.ours == ours) names.push_back(rule.theirs);
  return names;
}

TEST(Llama, MapsEveryParameterToHuggingFaceOnce) {
  for (const bool is_tied : {false, true}) {
    const auto model = make({{"enable_weight_tying", is_tied}});
    const auto rules = rules_of(*model, Naming::hugging_face);
    EXPECT_EQ(theirs_of(rules, "output.weight").size(), is_tied ? 0u : 1u);
    for (const auto& rule : rules) {
      // a stored tied head is the embedding under another name
      const bool is_shared = is_tied && rule.ours == "tok_embeddings.weight";
      EXPECT_EQ(theirs_of(rules, rule.ours).size(), is_shared ? 2u : 1u) << rule.ours;
      EXPECT_EQ(rule.num_rotary_heads, 0) << rule.ours;  // both rotate halves
    }
  }
}

TEST(Llama, TakesMetasAndTorchtitansNamesAndPairs) {
  for (const Naming naming : {Naming::meta, Naming::torchtitan}) {
    const auto model = make();
    const auto rules = rules_of(*model, naming);
    for (const auto& rule : rules) {
      const bool is_query = rule.ours.find(".wq.") != std::string::npos,
                 is_key = rule.ours.find(".wk.") != std::string::npos;
      EXPECT_EQ(rule.num_rotary_heads, is_query ? 8 : is_key ? 2 : 0) << rule.ours;
      EXPECT_EQ(theirs_of(rules, rule.ours).front(), rule.ours);  // v0.2.2 used Meta's names
    }
    const std::vector<std::string> wq = theirs_of(rules, "layers.1.attention.wq.weight"),
                                   head = theirs_of(rules, "output.weight");
    if (naming == Naming::meta) {
      EXPECT_EQ(wq.size() + head.size(), 2u);
    } else {
      EXPECT_EQ(wq.back(), "layers.1.attention.qkv_linear.wq.weight");
      EXPECT_EQ(head.back(), "lm_head.weight");
    }
  }
}

TEST(Llama, TakesTheSecondCopyOfATiedMatrixForTheFirst) {
  const auto tied_model = make({{"enable_weight_tying", true}});
  const auto& tied = dynamic_cast<const HfExchange&>(*tied_model);
  using Names = std::vector<std::string>;
  const auto embedding = [&](Naming naming) {
    return theirs_of(tied.name_rules(naming), "tok_embeddings.weight");
  };
  EXPECT_EQ(embedding(Naming::hugging_face),
            (Names{"model.embed_tokens.weight", "lm_head.weight"}));
  EXPECT_EQ(embedding(Naming::meta), (Names{"tok_embeddings.weight", "output.weight"}));
  EXPECT_EQ(embedding(Naming::torchtitan),
            (Names{"tok_embeddings.weight", "output.weight", "lm_head.weight"}));
}

TEST(Llama, IgnoresTablesOfRotaryPositions) {
  const auto model = make();
  const auto& exchange = dynamic_cast<const HfExchange&>(*model);
  using Names = std::vector<std::string>;
  EXPECT_EQ(exchange.ignored_names(Naming::hugging_face), (Names{"rotary_emb.inv_freq"}));
  for (const Naming naming : {Naming::meta, Naming::torchtitan})
    EXPECT_EQ(exchange.ignored_names(naming), (Names{"rope.freqs", "freqs_cis"}));
}

TEST(Llama, DescribesItselfToHuggingFace) {
  const auto model = make(
      {{"rope_scaling", Value::map({{"scaling_factor", 32.0}})}, {"enable_weight_tying", true}});
  const Value config = dynamic_cast<const HfExchange&>(*model).hf_config();
  EXPECT_EQ(config.at("num_key_value_heads"), Value(2));
  EXPECT_EQ(config.at("head_dim"), Value(32));
  EXPECT_EQ(config.at("intermediate_size"), Value(768));
  EXPECT_EQ(config.at("tie_word_embeddings"), Value(true));
  EXPECT_EQ(config.at("rope_scaling").at("factor"), Value(32.0));
  EXPECT_TRUE(dynamic_cast<const HfExchange&>(*make()).hf_config().at("rope_scaling").is_null());
}

TEST(Llama, RunsInHalfPrecisionNearFullPrecision) {
  Batch batch = {.tokens = at::arange(64).reshape({2, 32}),
                 .labels = at::arange(1, 65).reshape({2, 32})};
  const auto loss = [&](at::ScalarType dtype) {
    ModelPart part(make()->build());
    part.materialize(c10::kCPU, dtype, 5);
    const at::Tensor sum = part.forward(at::Tensor(), batch);
    EXPECT_EQ(sum.scalar_type(), at::kFloat);
    sum.backward();
    for (const nn::Parameter* p : part.parameters()) {
      EXPECT_EQ(p->grad().scalar_type(), dtype) << p->name();
      EXPECT_TRUE(at::isfinite(p->grad()).all().item<bool>()) << p->name();
    }
    return sum.item<double>() / 64;
  };
  EXPECT_NEAR(loss(at::kBFloat16), loss(at::kFloat), 2e-2);
}

TEST(Llama, RefusesDimensionsThatDoNotFit) {
  const auto message = [](std::initializer_list<Value::Member> changed) {
    const Error error = error_of([&] { make(changed); });
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return std::string(error.what());
  };
  EXPECT_TRUE(holds(message({{"n_heads", 6}, {"n_kv_heads", 2}}),
                    "model.dim = 256 is not divisible by model.n_heads = 6"));
  EXPECT_TRUE(holds(message({{"n_kv_heads", 3}}),
                    "model.n_heads = 8 is not a multiple of model.n_kv_heads = 3"));
  EXPECT_TRUE(holds(message({{"n_kv_heads", 16}}), "model.n_kv_heads = 16"));
  EXPECT_TRUE(holds(message({{"head_dim", 5}}), "model.head_dim must be even"));
  EXPECT_TRUE(holds(message({{"dim", 8}}),
                    "model.head_dim must be even for rotary positions, got 1 (= dim / n_heads)"));
  EXPECT_TRUE(holds(
      message({{"rope_scaling", Value::map({{"low_freq_factor", 8.0}})}}),
      "model.rope_scaling.low_freq_factor = 8 is above model.rope_scaling.high_freq_factor = 4"));
}

}  // namespace
}  // namespace titan
