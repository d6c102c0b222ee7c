// The transformer family's variants: blocks with norms after attention and feed-forward, against a
// formula over the block's children (end_to_end.olmo2 compares with transformers); names and FLOPs
// of both kinds of norms.
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <titan/models/transformer.h>
#include <titan/models/weight_names.h>

#include "tests/plugins/error_of.h"

namespace titan::models_test {
namespace {

models::Transformer small_network() {
  return {.dim = 32,
          .n_layers = 2,
          .n_heads = 4,
          .n_kv_heads = 2,
          .head_dim = 8,
          .ffn_dim = 48,
          .vocab_size = 64};
}

TEST(TransformerBlock, IsNormalisedBehindWhereItIsAsked) {
  at::NoGradGuard no_grad;
  models::Transformer network = small_network();
  network.norms_after = true;
  ModelPart part(models::build_layers(network));
  part.materialize(c10::kCPU, at::kFloat, 3);
  std::map<std::string, nn::Module*> children;
  part.layers()[1].module->visit_modules(
      [&](const std::string& path, nn::Module& module) { children[path] = &module; });
  for (const char* norm : {"attention_norm", "ffn_norm"})
    children.at(norm)->visit_parameters([](nn::Parameter& weight) { weight.value().mul_(0.5); });
  const at::Tensor x = at::randn({2, 9, 32}, at::detail::createCPUGenerator(1));
  const auto run = [&](const char* path, const at::Tensor& input) {
    return (*children.at(path))(input, Batch());
  };
  const at::Tensor h = x + run("attention_norm", run("attention", x));
  const at::Tensor expected = h + run("ffn_norm", run("feed_forward", h));
  EXPECT_TRUE(at::equal((*part.layers()[1].module)(x, Batch()), expected));
}

TEST(TransformerNames, FollowTheNormsOfTheNetwork) {
  models::Transformer network = small_network();
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& rule : models::name_rules(network, {}, Naming::hugging_face))
      if (rule.theirs.find("norm") != std::string::npos &&
          rule.theirs.find("layers.0") != std::string::npos)
        found.insert(rule.ours + " = " + rule.theirs);
    return found;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(names(),
            (Names{"layers.0.attention_norm.weight = model.layers.0.input_layernorm.weight",
                   "layers.0.ffn_norm.weight = model.layers.0.post_attention_layernorm.weight"}));
  network.norms_after = true;
  network.qk_norm = models::QkNorm::of_projections;
  EXPECT_EQ(
      names(),
      (Names{"layers.0.attention.q_norm.weight = model.layers.0.self_attn.q_norm.weight",
             "layers.0.attention.k_norm.weight = model.layers.0.self_attn.k_norm.weight",
             "layers.0.attention_norm.weight = model.layers.0.post_attention_layernorm.weight",
             "layers.0.ffn_norm.weight = model.layers.0.post_feedforward_layernorm.weight"}));
}

/// When rotary pairs are stored next to each other, norm weights over all heads have the same row
/// order as these heads.
TEST(TransformerNames, KeepTheRowsOfNormsWithThoseOfTheirHeads) {
  models::Transformer network = small_network();
  network.qk_norm = models::QkNorm::of_projections;
  std::map<std::string, int64_t> heads;
  for (const auto& rule :
       models::name_rules(network, {.rows = models::RotaryRows::pairs}, Naming::hugging_face))
    heads[rule.ours] = rule.num_rotary_heads;
  EXPECT_EQ(heads.at("layers.1.attention.q_norm.weight"), 4);
  EXPECT_EQ(heads.at("layers.1.attention.k_norm.weight"), 2);
  network.qk_norm = models::QkNorm::of_heads;
  for (const auto& rule :
       models::name_rules(network, {.rows = models::RotaryRows::pairs}, Naming::hugging_face))
    heads[rule.ours] = rule.num_rotary_heads;
  EXPECT_EQ(heads.at("layers.1.attention.q_norm.weight"), 1);
}

TEST(TransformerFlops, CountTheWeightsOfNorms) {
  models::Transformer network = small_network();
  const auto weights = [&] {
    ModelPart part(models::build_layers(network));
    return static_cast<double>(part.num_parameters() - 64 * 32);  // without the embedding
  };
  for (const models::QkNorm norm :
       {models::QkNorm::none, models::QkNorm::of_heads, models::QkNorm::of_projections}) {
    network.qk_norm = norm;
    EXPECT_DOUBLE_EQ(models::flops_per_token(network, 16).full_attention,
                     6 * weights() + 12.0 * 2 * 4 * 8 * 16);
  }
}

TEST(TransformerHeads, FollowFromTheWidthWhereTheyAreUnset) {
  const models::HeadSizes sizes = models::head_sizes(64, 4, {}, {});
  EXPECT_EQ(sizes.n_kv_heads, 4);
  EXPECT_EQ(sizes.head_dim, 16);
  EXPECT_EQ(models::head_sizes(64, 4, 2, 6).head_dim, 6);
  const auto message = [](int64_t dim, std::optional<int64_t> kv, std::optional<int64_t> width) {
    return std::string(
        titan::testing::error_of([&] { models::head_sizes(dim, 4, kv, width); }).what());
  };
  EXPECT_EQ(
      message(66, {}, {}),
      "model.dim = 66 is not divisible by model.n_heads = 4; set model.head_dim to choose the "
      "width of a head");
  EXPECT_EQ(message(12, {}, {}),
            "model.head_dim must be even for rotary positions, got 3 (= dim / n_heads)");
  EXPECT_EQ(message(64, 3, {}), "model.n_heads = 4 is not a multiple of model.n_kv_heads = 3");
}

}  // namespace
}  // namespace titan::models_test
