#include "weight_names.h"

#include <array>
#include <string>
#include <utility>

namespace titan::models {
namespace {

using NameRule = HfExchange::NameRule;

/// One weight of a block; names without "layers.N." before and ".weight" behind.
struct BlockWeight {
  const char* ours;  // Meta and torchtitan v0.2.2 use the same
  const char* hugging_face;
  const char* newer_torchtitan;  // null: unchanged
  enum Rows { plain, of_queries, of_keys, of_one_head } rows;
};
constexpr BlockWeight kBlockWeights[] = {
    {"attention.wq", "self_attn.q_proj", "attention.qkv_linear.wq", BlockWeight::of_queries},
    {"attention.wk", "self_attn.k_proj", "attention.qkv_linear.wk", BlockWeight::of_keys},
    {"attention.wv", "self_attn.v_proj", "attention.qkv_linear.wv", BlockWeight::plain},
    {"attention.wo", "self_attn.o_proj", nullptr, BlockWeight::plain},
    {"attention_norm", "input_layernorm", nullptr, BlockWeight::plain},
    {"ffn_norm", "post_attention_layernorm", nullptr, BlockWeight::plain}};
constexpr BlockWeight kFeedForward[] = {
    {"feed_forward.w1", "mlp.gate_proj", nullptr, BlockWeight::plain},
    {"feed_forward.w3", "mlp.up_proj", nullptr, BlockWeight::plain},
    {"feed_forward.w2", "mlp.down_proj", nullptr, BlockWeight::plain}};
/// Of queries and keys that are normalised: one weight for each row of a head.
constexpr BlockWeight kNormsOfHeads[] = {
    {"attention.q_norm", "self_attn.q_norm", nullptr, BlockWeight::of_one_head},
    {"attention.k_norm", "self_attn.k_norm", nullptr, BlockWeight::of_one_head}};

std::vector<BlockWeight> block_weights(const Transformer& network) {
  std::vector<BlockWeight> weights(std::begin(kBlockWeights), std::end(kBlockWeights));
  if (!network.mixture)
    weights.insert(weights.end(), std::begin(kFeedForward), std::end(kFeedForward));
  if (network.normalizes_qk)
    weights.insert(weights.end(), std::begin(kNormsOfHeads), std::end(kNormsOfHeads));
  return weights;
}

void append(std::vector<NameRule>& to, std::vector<NameRule> rules) {
  for (NameRule& rule : rules) to.push_back(std::move(rule));
}

/// Of the router and the experts of layer `layer`, which ends in a dot.
std::vector<NameRule> mixture_rules(const Transformer& network, const std::string& layer,
                                    const MixtureNames& names) {
  const std::string theirs = "model." + layer;
  std::vector<NameRule> rules = {
      {layer + "moe.router.gate.weight", theirs + names.gate + ".weight"}};
  const std::pair<const char*, const char*> parts[] = {
      {"w1", names.w1}, {"w2", names.w2}, {"w3", names.w3}};
  for (const auto& [ours, part] : parts)
    append(rules, stack_rules(layer + "moe.experts." + ours, network.mixture->router.num_experts,
                              [&, part = part](int64_t expert) {
                                return theirs + names.experts + "." + std::to_string(expert) + "." +
                                       part + ".weight";
                              }));
  return rules;
}

}  // namespace

std::vector<NameRule> hugging_face_rules(const Transformer& network, const MixtureNames& mixture) {
  std::vector<NameRule> rules = {{"tok_embeddings.weight", "model.embed_tokens.weight"}};
  if (network.is_tied) rules.push_back({"tok_embeddings.weight", "lm_head.weight"});
  for (int64_t i = 0; i < network.n_layers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    for (const BlockWeight& weight : block_weights(network))
      rules.push_back(
          {layer + weight.ours + ".weight", "model." + layer + weight.hugging_face + ".weight"});
    if (network.mixture) append(rules, mixture_rules(network, layer, mixture));
  }
  rules.push_back({"norm.weight", "model.norm.weight"});
  if (!network.is_tied) rules.push_back({"output.weight", "lm_head.weight"});
  return rules;
}

std::vector<NameRule> meta_rules(const Transformer& network, RotaryRows rows, bool with_newer) {
  const char* head_of = network.is_tied ? "tok_embeddings.weight" : "output.weight";
  // by BlockWeight::Rows
  std::array<int64_t, 4> heads = {0, network.n_heads, network.n_kv_heads, 1};
  if (rows == RotaryRows::halves) heads = {};
  std::vector<NameRule> rules = {{"tok_embeddings.weight", "tok_embeddings.weight"}};
  for (int64_t i = 0; i < network.n_layers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    for (const BlockWeight& weight : block_weights(network)) {
      const std::string ours = layer + weight.ours + ".weight";
      rules.push_back({ours, ours, heads[weight.rows]});
      if (with_newer && weight.newer_torchtitan)
        rules.push_back({ours, layer + weight.newer_torchtitan + ".weight", heads[weight.rows]});
    }
    if (network.mixture)
      for (const char* name :
           {"moe.router.gate.weight", "moe.experts.w1", "moe.experts.w2", "moe.experts.w3"})
        rules.push_back({layer + name, layer + name});
  }
  rules.push_back({"norm.weight", "norm.weight"});
  rules.push_back({head_of, "output.weight"});
  if (with_newer) rules.push_back({head_of, "lm_head.weight"});
  return rules;
}

}  // namespace titan::models
