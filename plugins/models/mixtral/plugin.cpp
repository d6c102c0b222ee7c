// Registers the model mixtral, the published sizes and one for tests.
#include <titan/plugin.h>

#include "options.h"

namespace titan::mixtral {
namespace {

void declare_options(ComponentBuilder<Mixtral>& builder) {
  using O = MixtralOptions;
  auto shared = models::shared_options<O>(builder);
  shared.sizes().vocab_size();
  builder.option("hidden_dim", &O::hidden_dim, "Width within one expert").at_least(1);
  shared.num_experts()
      .top_k()
      .norm_eps()
      .rope_theta()
      .max_position_embeddings()
      .depth_init()
      .enable_weight_tying()
      .balance();
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
