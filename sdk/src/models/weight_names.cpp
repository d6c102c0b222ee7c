#include <titan/models/weight_names.h>

#include <array>
#include <string>
#include <utility>

namespace titan::models {
namespace {

using NameRule = HfExchange::NameRule;

constexpr BlockWeight kAttention[] = {
    {"attention.wq", "self_attn.q_proj", "attention.qkv_linear.wq", BlockWeight::of_queries},
    {"attention.wk", "self_attn.k_proj", "attention.qkv_linear.wk", BlockWeight::of_keys},
    {"attention.wv", "self_attn.v_proj", "attention.qkv_linear.wv", BlockWeight::plain},
    {"attention.wo", "self_attn.o_proj", nullptr, BlockWeight::plain}};
constexpr BlockWeight kNorms[] = {
    {"attention_norm", "input_layernorm", nullptr, BlockWeight::plain},
    {"ffn_norm", "post_attention_layernorm", nullptr, BlockWeight::plain}};
constexpr BlockWeight kNormsAfter[] = {
    {"attention_norm", "post_attention_layernorm", nullptr, BlockWeight::plain},
    {"ffn_norm", "post_feedforward_layernorm", nullptr, BlockWeight::plain}};
constexpr BlockWeight kFeedForward[] = {
    {"feed_forward.w1", "mlp.gate_proj", nullptr, BlockWeight::plain},
    {"feed_forward.w3", "mlp.up_proj", nullptr, BlockWeight::plain},
    {"feed_forward.w2", "mlp.down_proj", nullptr, BlockWeight::plain}};
/// Norms of queries and keys: one weight for each row of a head, or of all heads.
constexpr BlockWeight kNormsOfHeads[] = {
    {"attention.q_norm", "self_attn.q_norm", nullptr, BlockWeight::of_one_head},
    {"attention.k_norm", "self_attn.k_norm", nullptr, BlockWeight::of_one_head}};
constexpr BlockWeight kNormsOfProjections[] = {
    {"attention.q_norm", "self_attn.q_norm", nullptr, BlockWeight::of_queries},
    {"attention.k_norm", "self_attn.k_norm", nullptr, BlockWeight::of_keys}};

std::vector<BlockWeight> block_weights(const Transformer& network, int64_t layer,
                                       const WeightNames& names) {
  std::vector<BlockWeight> weights = names.attention;
  const auto add = [&](const auto& more) {
    weights.insert(weights.end(), std::begin(more), std::end(more));
  };
  if (weights.empty()) add(kAttention);
  network.norms_after ? add(kNormsAfter) : add(kNorms);
  if (!network.is_mixture(layer)) {
    if (names.feed_forward.empty())
      add(kFeedForward);
    else
      add(names.feed_forward);
  }
  if (network.qk_norm == QkNorm::of_heads) add(kNormsOfHeads);
  if (network.qk_norm == QkNorm::of_projections) add(kNormsOfProjections);
  return weights;
}

void append(std::vector<NameRule>& to, std::vector<NameRule> rules) {
  for (NameRule& rule : rules) to.push_back(std::move(rule));
}

/// The number of heads for each BlockWeight::Rows, in whose rows the elements that rotate together
/// are adjacent there.
std::array<int64_t, 4> rotary_heads(const Transformer& network, RotaryRows rows) {
  if (rows == RotaryRows::halves) return {};
  return {0, network.n_heads, network.n_kv_heads, 1};
}

/// Rules of the router and the experts of a layer; `ours` and `theirs` end in a dot.
std::vector<NameRule> mixture_rules(const Transformer& network, const std::string& ours,
                                    const std::string& theirs, const MixtureNames& names) {
  std::vector<NameRule> rules = {
      {ours + "moe.router.gate.weight", theirs + names.gate + ".weight"}};
  if (network.mixture->router.is_biased() && names.expert_bias)
    rules.push_back({ours + "moe.expert_bias", theirs + names.expert_bias});
  const std::pair<const char*, const char*> parts[] = {
      {"w1", names.w1}, {"w2", names.w2}, {"w3", names.w3}};
  for (const auto& [own, part] : parts) {
    append(rules, stack_rules(ours + "moe.experts." + own, network.mixture->router.num_experts,
                              [&, part = part](int64_t expert) {
                                return theirs + names.experts + "." + std::to_string(expert) + "." +
                                       part + ".weight";
                              }));
    if (network.mixture->num_shared_experts > 0)
      rules.push_back({ours + "moe.shared_experts." + own + ".weight",
                       theirs + names.shared + "." + part + ".weight"});
  }
  return rules;
}

/// torchtitan's names, for a mixture of nn::MixtureOfExperts.
std::vector<std::string> mixture_names(const Transformer& network) {
  std::vector<std::string> names = {"moe.router.gate.weight", "moe.experts.w1", "moe.experts.w2",
                                    "moe.experts.w3"};
  if (network.mixture->router.has_bias) names.push_back("moe.router.gate.bias");
  if (network.mixture->router.is_biased()) names.push_back("moe.expert_bias");
  for (const char* name : {"moe.shared_experts.w1.weight", "moe.shared_experts.w2.weight",
                           "moe.shared_experts.w3.weight"})
    if (network.mixture->num_shared_experts > 0) names.push_back(name);
  return names;
}

/// Rules for names that begin with `prefix`.
std::vector<NameRule> hugging_face_rules(const Transformer& network, const WeightNames& names,
                                         const std::string& prefix) {
  const std::string model = prefix + "model.", head = prefix + "lm_head.weight";
  const std::array<int64_t, 4> heads = rotary_heads(network, names.rows);
  std::vector<NameRule> rules = {{"tok_embeddings.weight", model + "embed_tokens.weight"}};
  if (network.is_tied) rules.push_back({"tok_embeddings.weight", head});
  for (int64_t i = 0; i < network.n_layers; ++i) {
    const std::string ours = "layers." + std::to_string(i) + ".", theirs = model + ours;
    for (const BlockWeight& weight : block_weights(network, i, names))
      rules.push_back({ours + weight.ours + ".weight", theirs + weight.hugging_face + ".weight",
                       heads[weight.rows]});
    if (!network.is_mixture(i)) continue;
    append(rules, names.mixture_rules ? names.mixture_rules(ours, theirs)
                                      : mixture_rules(network, ours, theirs, names.mixture));
  }
  rules.push_back({"norm.weight", model + "norm.weight"});
  if (!network.is_tied) rules.push_back({"output.weight", head});
  if (names.scales)
    for (NameRule& rule : rules)
      if (rule.scales.empty()) rule.scales = rule.theirs + names.scales;
  return rules;
}

/// `with_newer` adds the names that torchtitan introduced after v0.2.2.
std::vector<NameRule> meta_rules(const Transformer& network, RotaryRows rows, bool with_newer,
                                 const WeightNames& names) {
  const char* head_of = network.is_tied ? "tok_embeddings.weight" : "output.weight";
  const std::array<int64_t, 4> heads = rotary_heads(network, rows);
  std::vector<NameRule> rules = {{"tok_embeddings.weight", "tok_embeddings.weight"}};
  for (int64_t i = 0; i < network.n_layers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    for (const BlockWeight& weight : block_weights(network, i, names)) {
      const std::string ours = layer + weight.ours + ".weight";
      rules.push_back({ours, ours, heads[weight.rows]});
      if (with_newer && weight.newer_torchtitan)
        rules.push_back({ours, layer + weight.newer_torchtitan + ".weight", heads[weight.rows]});
    }
    if (!network.is_mixture(i)) continue;
    for (const std::string& name : mixture_names(network))
      rules.push_back({layer + name, layer + name});
  }
  rules.push_back({"norm.weight", "norm.weight"});
  rules.push_back({head_of, "output.weight"});
  if (with_newer) rules.push_back({head_of, "lm_head.weight"});
  return rules;
}

}  // namespace

std::vector<NameRule> name_rules(const Transformer& network, const WeightNames& names,
                                 Naming naming) {
  std::vector<NameRule> rules;
  switch (naming) {
    case Naming::hugging_face:
      if (!names.has_hugging_face) break;
      for (const char* prefix : names.prefixes)
        append(rules, hugging_face_rules(network, names, prefix));
      break;
    case Naming::torchtitan:
      if (names.torchtitan_rules)
        rules = names.torchtitan_rules();
      else if (names.torchtitan)
        rules = meta_rules(network, *names.torchtitan, /*with_newer=*/true, names);
      break;
    case Naming::meta:
      if (names.meta) rules = meta_rules(network, *names.meta, /*with_newer=*/false, names);
      break;
  }
  return rules;
}

std::vector<std::string> ignored_names(const WeightNames& names, Naming naming) {
  if (naming != Naming::hugging_face) return names.ignored_elsewhere;
  std::vector<std::string> ignored = names.ignored;
  if (names.also_ignored)
    for (std::string& name : names.also_ignored()) ignored.push_back(std::move(name));
  return ignored;
}

}  // namespace titan::models
