// Registers the model mixtral with the sizes that were published and one for tests.
#include <titan/plugin.h>

#include "mixtral.h"

namespace titan::mixtral {
namespace {

void declare_options(ComponentBuilder<Mixtral>& builder) {
  using O = MixtralOptions;
  builder.option("dim", &O::dim, "Width of the residual stream")
      .at_least(1)
      .option("n_layers", &O::n_layers, "Number of transformer blocks")
      .at_least(1)
      .option("n_heads", &O::n_heads, "Number of query heads")
      .at_least(1)
      .option("n_kv_heads", &O::n_kv_heads, "Number of key and value heads; unset = n_heads")
      .at_least(1)
      .option("head_dim", &O::head_dim, "Width of one head; unset = dim / n_heads")
      .at_least(2)
      .option("vocab_size", &O::vocab_size, "Rows of the embedding and of the head")
      .at_least(1)
      .option("hidden_dim", &O::hidden_dim, "Width within one expert")
      .at_least(1)
      .option("num_experts", &O::num_experts, "Experts of each layer")
      .at_least(1)
      .option("top_k", &O::top_k, "Experts that a token goes to")
      .at_least(1)
      .option("norm_eps", &O::norm_eps, "Epsilon of the normalisations")
      .greater_than(0)
      .option("rope_theta", &O::rope_theta, "Base of the rotary wavelengths")
      .greater_than(1)
      .option("max_position_embeddings", &O::max_position_embeddings,
              "Longest sequence the weights are meant for, as the exported config.json tells it; "
              "at least training.seq_len")
      .at_least(1)
      .option("depth_init", &O::depth_init,
              "Draw output projections narrower in deeper layers (else by n_layers)")
      .option("enable_weight_tying", &O::enable_weight_tying,
              "Embedding and head share one matrix");
  models::declare_balance<O>(builder);
  builder.check([](const O& own, const JobView& job, RuleReport& report) {
    models::check_balance(own, job, report);
  });
}

}  // namespace
}  // namespace titan::mixtral

TITAN_PLUGIN(plugin) {
  plugin
      .add<titan::mixtral::Mixtral>("mixtral",
                                    "Mixtral: a Llama whose feed-forwards are mixtures of experts.")
      .options(titan::mixtral::declare_options);
  plugin.add_flavor("mixtral", "debugmodel", "8 experts of which 2 are used, for tests",
                    {{"dim", 256},
                     {"n_layers", 4},
                     {"n_heads", 8},
                     {"n_kv_heads", 4},
                     {"vocab_size", 2048},
                     {"hidden_dim", 512}});
  plugin.add_flavor(
      "mixtral", "8x7B", "Mixtral 8x7B",
      {{"dim", 4096}, {"n_layers", 32}, {"n_heads", 32}, {"n_kv_heads", 8}, {"hidden_dim", 14336}});
  plugin.add_flavor("mixtral", "8x22B", "Mixtral 8x22B (v0.1)",
                    {{"dim", 6144},
                     {"n_layers", 56},
                     {"n_heads", 48},
                     {"n_kv_heads", 8},
                     {"hidden_dim", 16384},
                     {"max_position_embeddings", 65536}});
}
