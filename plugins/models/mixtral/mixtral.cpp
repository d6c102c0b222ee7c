// Builds the network of a Mixtral; names and config.json keys for transformers.
#include "options.h"

namespace titan::mixtral {

models::Transformer network_of(const MixtralOptions& o, const ModelContext& context) {
  models::Transformer network = models::shared_network(o, context);
  models::check_experts(o.num_experts, o.top_k);
  nn::RouterOptions router = {.num_experts = o.num_experts, .top_k = o.top_k, .normalises = true};
  models::set_balance(o, router);
  network.mixture = models::Mixture{.router = router, .hidden_dim = o.hidden_dim};
  return network;
}

/// transformers rotates halves of a head, as Titan does, so the rules only rename.
models::Exchange exchange_of(const MixtralOptions& o, const models::Transformer& network,
                             const Value& theirs) {
  using models::HfKey, models::hf_fixed, models::hf_written;
  return {.weights = {.mixture = {.gate = "block_sparse_moe.gate",
                                  .experts = "block_sparse_moe.experts",
                                  .w1 = "w1",
                                  .w2 = "w2",
                                  .w3 = "w3"}},
          .config = {
              .model_types = {"mixtral"},
              .keys = {hf_written("architectures", Value::list({"MixtralForCausalLM"})),
                       hf_written("model_type", "mixtral"),
                       {"hidden_size", "dim", o.dim, 4096},
                       {"intermediate_size", "hidden_dim", o.hidden_dim, 14336},
                       {"num_hidden_layers", "n_layers", o.n_layers, 32},
                       {"num_attention_heads", "n_heads", o.n_heads, 32},
                       {"num_key_value_heads", "n_kv_heads", network.n_kv_heads, 8},
                       {.key = "head_dim",
                        .option = "head_dim",
                        .ours = network.head_dim,
                        .absent = models::hf_quotient(theirs, "hidden_size", "num_attention_heads"),
                        .follows = true},
                       {"vocab_size", "vocab_size", o.vocab_size, 32000},
                       {"num_local_experts", "num_experts", o.num_experts, 8},
                       {"num_experts_per_tok", "top_k", o.top_k, 2},
                       {"max_position_embeddings",
                        "max_position_embeddings",
                        network.max_position_embeddings,
                        {},
                        HfKey::written_only},
                       {"rope_theta", "rope_theta", o.rope_theta, {}, HfKey::written_only},
                       {"tie_word_embeddings", "enable_weight_tying", o.enable_weight_tying, false},
                       {"rms_norm_eps", "norm_eps", o.norm_eps, 1e-5},
                       hf_fixed("hidden_act", "silu"),
                       hf_fixed("sliding_window", {}),
                       hf_written("attention_dropout", 0.0),
                       hf_fixed("router_jitter_noise", 0.0),
                       hf_written("initializer_range", 0.02),
                       hf_written("use_cache", true),
                       models::hf_compared("quantization_config")}}};
}

}  // namespace titan::mixtral
