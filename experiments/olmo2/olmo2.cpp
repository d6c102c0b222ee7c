// OLMo 2: norms after attention and feed-forward instead of before, and norms of queries and keys
// over all heads. Team OLMo, 2025 (arXiv:2501.00656).
#include <cstdint>
#include <optional>

#include <titan/models/shared_options.h>
#include <titan/models/transformer_model.h>
#include <titan/plugin.h>

namespace olmo2 {

namespace models = titan::models;

struct Options {
  int64_t dim = 4096;
  int64_t n_layers = 32;
  int64_t n_heads = 32;
  std::optional<int64_t> n_kv_heads;  // unset: n_heads
  std::optional<int64_t> head_dim;    // unset: dim / n_heads
  int64_t hidden_dim = 11008;
  int64_t vocab_size = 100352;
  double norm_eps = 1e-6;
  double rope_theta = 500000;
  int64_t max_position_embeddings = 4096;
  bool depth_init = false;
  bool enable_weight_tying = false;
  models::AttentionType attn_type = models::AttentionType::sdpa;
};

models::Transformer network_of(const Options& o, const titan::ModelContext& context) {
  models::Transformer network = models::shared_network(o, context);
  network.ffn_dim = o.hidden_dim;
  network.qk_norm = models::QkNorm::of_projections;
  network.norms_after = true;
  return network;
}

models::Exchange exchange_of(const Options& o, const models::Transformer& network,
                             const titan::Value& theirs) {
  using models::HfKey, models::hf_compared, models::hf_fixed, models::hf_written, titan::Value;
  return {.config = {
              .model_types = {"olmo2"},
              .keys = {hf_written("architectures", Value::list({"Olmo2ForCausalLM"})),
                       hf_written("model_type", "olmo2"),
                       {"hidden_size", "dim", o.dim, 4096},
                       {"intermediate_size", "hidden_dim", o.hidden_dim, 11008},
                       {"num_hidden_layers", "n_layers", o.n_layers, 32},
                       {"num_attention_heads", "n_heads", o.n_heads, 32},
                       {.key = "num_key_value_heads",
                        .option = "n_kv_heads",
                        .ours = network.n_kv_heads,
                        .absent = models::hf_value(theirs, "num_attention_heads", 32),
                        .follows = true},
                       {.key = "head_dim",
                        .option = "head_dim",
                        .ours = network.head_dim,
                        .absent = models::hf_quotient(theirs, "hidden_size", "num_attention_heads"),
                        .follows = true},
                       {"vocab_size", "vocab_size", o.vocab_size, 50304},
                       {"max_position_embeddings", "max_position_embeddings",
                        network.max_position_embeddings, 2048, HfKey::written_only},
                       {"rope_theta", "rope_theta", o.rope_theta, 10000.0, HfKey::written_only},
                       {"tie_word_embeddings", "enable_weight_tying", o.enable_weight_tying, false},
                       {"rms_norm_eps", "norm_eps", o.norm_eps, 1e-5},
                       hf_fixed("hidden_act", "silu"),
                       hf_fixed("attention_bias", false),
                       hf_written("attention_dropout", 0.0),
                       hf_compared("quantization_config")}}};
}

using Olmo2 = models::TransformerModel<Options, network_of, exchange_of>;

void declare_options(titan::ComponentBuilder<Olmo2>& builder) {
  auto shared = models::shared_options<Options>(builder);
  shared.sizes();
  builder.option("hidden_dim", &Options::hidden_dim, "Width of the feed-forward").at_least(1);
  shared.vocab_size()
      .norm_eps()
      .rope_theta()
      .max_position_embeddings()
      .depth_init()
      .enable_weight_tying()
      .attn_type();
}

}  // namespace olmo2

TITAN_PLUGIN(plugin) {
  plugin.add<olmo2::Olmo2>("maintainers/olmo2", "OLMo 2: norms after layers, queries and keys normalised.")
      .options(olmo2::declare_options);
  plugin.add_flavor("maintainers/olmo2", "debugmodel", "6 million parameters, for first runs",
                    {{"dim", 256},
                     {"n_layers", 6},
                     {"n_heads", 16},
                     {"hidden_dim", 768},
                     {"vocab_size", 2048}});
  plugin.add_flavor("maintainers/olmo2", "1B", "OLMo 2 1B",
                    {{"dim", 2048}, {"n_layers", 16}, {"n_heads", 16}, {"hidden_dim", 8192}});
  plugin.add_flavor("maintainers/olmo2", "7B", "OLMo 2 7B", {{"dim", 4096}});
}
