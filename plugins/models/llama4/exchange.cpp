// How others name a Llama 4's weights and describe its size: transformers and torchtitan. Part of
// class Llama4.
#include <algorithm>
#include <utility>

#include <titan/hf_config.h>

#include "../common/weight_names.h"
#include "llama4.h"
#include "text_config.h"

namespace titan::llama4 {
namespace {

using NameRule = HfExchange::NameRule;

/// Of the router and the experts of a layer. Theirs has the matrices of all experts in two tensors,
/// (experts, in, out), gates before ups.
std::vector<NameRule> mixture_rules(int64_t expert_width, const std::string& ours,
                                    const std::string& theirs) {
  const std::string experts = ours + "moe.experts.",
                    their_experts = theirs + "feed_forward.experts.";
  const std::vector<int64_t> transposed = {0, 2, 1};
  std::vector<NameRule> rules = {
      {ours + "moe.router.gate.weight", theirs + "feed_forward.router.weight"},
      {.ours = experts + "w1",
       .theirs = their_experts + "gate_up_proj",
       .of_theirs = {TensorCut::range(2, 0, expert_width)},
       .order = transposed},
      {.ours = experts + "w3",
       .theirs = their_experts + "gate_up_proj",
       .of_theirs = {TensorCut::range(2, expert_width, expert_width)},
       .order = transposed},
      {.ours = experts + "w2", .theirs = their_experts + "down_proj", .order = transposed}};
  for (const auto& [own, part] :
       {std::pair("w1", "gate_proj"), {"w3", "up_proj"}, {"w2", "down_proj"}})
    rules.push_back({ours + "moe.shared_experts." + own + ".weight",
                     theirs + "feed_forward.shared_expert." + part + ".weight"});
  return rules;
}

models::WeightNames hugging_face_names(int64_t expert_width, const char* prefix) {
  using Weight = models::BlockWeight;
  return {.feed_forward = {Weight{"feed_forward.w1", "feed_forward.gate_proj"},
                           Weight{"feed_forward.w3", "feed_forward.up_proj"},
                           Weight{"feed_forward.w2", "feed_forward.down_proj"}},
          .rows = models::RotaryRows::pairs,
          .prefix = prefix,
          .mixture_rules = [=](const std::string& ours, const std::string& theirs) {
            return mixture_rules(expert_width, ours, theirs);
          }};
}

/// Of completed configurations.
std::vector<HfMember> config_members() {
  std::vector<HfMember> members;
  for (const char* name : {"model_type",          "hidden_size",
                           "intermediate_size",   "intermediate_size_mlp",
                           "num_hidden_layers",   "num_attention_heads",
                           "num_key_value_heads", "head_dim",
                           "vocab_size",          "num_local_experts",
                           "num_experts_per_tok", "moe_layers",
                           "rms_norm_eps",        "no_rope_layers",
                           "layer_types",         "attention_chunk_size",
                           "use_qk_norm",         "attn_temperature_tuning",
                           "floor_scale",         "attn_scale",
                           "tie_word_embeddings", "quantization_config"})
    members.push_back({name});
  members.push_back({"hidden_act", "silu"});
  members.push_back({"attention_bias", false});
  for (HfMember& member : hf_rope_members()) members.push_back(std::move(member));
  return members;
}

}  // namespace

std::vector<NameRule> Llama4::name_rules(Naming naming) const {
  if (naming == Naming::torchtitan)
    return models::meta_rules(network_, models::RotaryRows::pairs, /*with_newer=*/true);
  if (naming == Naming::meta || options_.num_shared_experts != 1) return {};
  const int64_t width = network_.mixture->hidden_dim;
  std::vector<NameRule> rules = models::hugging_face_rules(network_, hugging_face_names(width, ""));
  for (NameRule& rule :
       models::hugging_face_rules(network_, hugging_face_names(width, "language_model.")))
    rules.push_back(std::move(rule));
  return rules;
}

std::vector<std::string> Llama4::ignored_names(Naming naming) const {
  if (naming == Naming::torchtitan) return {"freqs_cis"};  // tables of rotary positions
  // and what sees images
  return {"rotary_emb.inv_freq", "vision_model.", "multi_modal_projector."};
}

Value Llama4::hf_config() const {
  const Llama4Options& o = options_;
  const RopeScaling& r = o.rope_scaling;
  Value scaling;
  if (r.scaling_factor != 1)
    scaling =
        Value::map({{"rope_type", "llama3"},
                    {"factor", r.scaling_factor},
                    {"low_freq_factor", r.low_freq_factor},
                    {"high_freq_factor", r.high_freq_factor},
                    {"original_max_position_embeddings", r.original_max_position_embeddings}});
  const int64_t longest = std::max(context_.seq_len, o.max_position_embeddings);
  return Value::map({{"architectures", Value::list({"Llama4ForCausalLM"})},
                     {"model_type", kTextModel},
                     {"hidden_size", o.dim},
                     {"intermediate_size", network_.mixture->hidden_dim},
                     {"intermediate_size_mlp", network_.ffn_dim},
                     {"num_hidden_layers", o.n_layers},
                     {"num_attention_heads", o.n_heads},
                     {"num_key_value_heads", network_.n_kv_heads},
                     {"head_dim", network_.head_dim},
                     {"vocab_size", o.vocab_size},
                     {"num_local_experts", o.num_experts},
                     {"num_experts_per_tok", o.top_k},
                     {"interleave_moe_layer_step", o.interleave_moe_layer_step},
                     {"moe_layers", moe_layers(o)},
                     {"max_position_embeddings", longest},
                     {"rope_theta", o.rope_theta},
                     {"rope_scaling", scaling},
                     {"no_rope_layers", no_rope_layers(o)},
                     {"layer_types", layer_types(o)},
                     // transformers wants one where no layer has any
                     {"attention_chunk_size", o.chunk_size() > 0 ? o.chunk_size() : longest},
                     {"use_qk_norm", o.use_qk_norm},
                     {"attn_temperature_tuning", o.attn_temperature_tuning},
                     {"floor_scale", o.floor_scale},
                     {"attn_scale", o.attn_scale},
                     {"tie_word_embeddings", o.enable_weight_tying},
                     {"rms_norm_eps", o.norm_eps},
                     {"hidden_act", "silu"},
                     {"attention_bias", false},
                     {"attention_dropout", 0.0},
                     {"output_router_logits", false},
                     {"router_aux_loss_coef", 0.001},
                     {"router_jitter_noise", 0.0},
                     {"initializer_range", 0.02},
                     {"use_cache", true}});
}

std::optional<Value> Llama4::options_for(const Value& theirs) const {
  const std::optional<Value> text = text_config_of(theirs);
  if (!text) return std::nullopt;
  return options_of(completed(*text));
}

std::vector<std::string> Llama4::config_differences(const Value& theirs) const {
  const std::optional<Value> text = text_config_of(theirs);
  return hf_config_differences(config_members(), completed(hf_config()),
                               text ? completed(*text) : theirs);
}

}  // namespace titan::llama4
