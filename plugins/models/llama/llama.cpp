// Builds the network of a Llama; names and config.json keys for transformers, Meta and torchtitan.
#include <titan/models/hf_table.h>

#include "options.h"

namespace titan::llama {
namespace {

int64_t feed_forward_width(const LlamaOptions& o) {
  int64_t width = 2 * (4 * o.dim) / 3;
  if (o.ffn_dim_multiplier)
    width = static_cast<int64_t>(*o.ffn_dim_multiplier * static_cast<double>(width));
  return (width + o.multiple_of - 1) / o.multiple_of * o.multiple_of;
}

/// Derives multiple_of and ffn_dim_multiplier such that they give the feed-forward width of
/// `config`.
void read_width(const Value& config, Value& options) {
  const Value width = models::hf_value(config, "intermediate_size"),
              dim = models::hf_value(config, "hidden_size");
  if (!width.is_integer() || !dim.is_integer() || dim.as_integer() <= 0) return;
  options["multiple_of"] = width.as_integer();
  options["ffn_dim_multiplier"] = static_cast<double>(width.as_integer()) /
                                  (8.0 / 3.0 * static_cast<double>(dim.as_integer())) * 0.99;
}

}  // namespace

models::Transformer network_of(const LlamaOptions& o, const ModelContext& context) {
  models::Transformer network = models::shared_network(o, context);
  network.ffn_dim = feed_forward_width(o);
  network.rope = models::scaled_rope(o.rope_theta, o.rope_scaling);
  return network;
}

/// transformers rotates halves of a head, as Titan does, so its rules only rename. Meta's code, and
/// therefore torchtitan's, rotates neighbours.
models::Exchange exchange_of(const LlamaOptions& o, const models::Transformer& network,
                             const Value& theirs) {
  using models::HfKey, models::hf_fixed, models::hf_written, models::RotaryRows;
  return {.weights = {.torchtitan = RotaryRows::pairs,
                      .meta = RotaryRows::pairs,
                      .ignored_elsewhere = {"rope.freqs", "freqs_cis"}},
          .config = {
              .model_types = {"llama"},
              .keys = {hf_written("architectures", Value::list({"LlamaForCausalLM"})),
                       hf_written("model_type", "llama"),
                       {"hidden_size", "dim", o.dim},
                       {"intermediate_size", "", network.ffn_dim},
                       {"num_hidden_layers", "n_layers", o.n_layers},
                       {"num_attention_heads", "n_heads", o.n_heads},
                       {.key = "num_key_value_heads",
                        .option = "n_kv_heads",
                        .ours = network.n_kv_heads,
                        .absent = models::hf_value(theirs, "num_attention_heads"),
                        .follows = true},
                       {.key = "head_dim",
                        .option = "head_dim",
                        .ours = network.head_dim,
                        .absent = models::hf_quotient(theirs, "hidden_size", "num_attention_heads"),
                        .follows = true},
                       {"vocab_size", "vocab_size", o.vocab_size},
                       {"max_position_embeddings",
                        "max_position_embeddings",
                        network.max_position_embeddings,
                        {},
                        HfKey::written_only},
                       {"rope_theta", "rope_theta", o.rope_theta, 10000.0, HfKey::written_only},
                       hf_written("rope_scaling", models::hf_rope_scaling(o.rope_scaling)),
                       {"tie_word_embeddings", "enable_weight_tying", o.enable_weight_tying, false},
                       {"rms_norm_eps", "norm_eps", o.norm_eps, 1e-6},
                       hf_fixed("hidden_act", "silu"),
                       hf_fixed("attention_bias", false),
                       hf_fixed("mlp_bias", false),
                       hf_written("attention_dropout", 0.0),
                       hf_written("initializer_range", 0.02),
                       hf_written("use_cache", true),
                       models::hf_compared("quantization_config")},
              .rope = models::hf_rope(o.rope_scaling),
              .also_read = read_width}};
}

}  // namespace titan::llama
