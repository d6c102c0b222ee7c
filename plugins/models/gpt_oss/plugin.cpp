// Registers the model gpt_oss and the flavors of torchtitan v0.2.2.
#include <titan/plugin.h>

#include "options.h"

namespace {

using titan::gpt_oss::GptOss;
using O = titan::gpt_oss::GptOssOptions;

void declare_options(titan::ComponentBuilder<GptOss>& builder) {
  auto shared = titan::models::shared_options<O>(builder);
  shared.sizes().moe_hidden_dim().num_experts().top_k();
  builder
      .option("swiglu_limit", &O::swiglu_limit, "Clamps gates from above, and ups from both sides")
      .greater_than(0)
      .option(
          "sliding_window_size", &O::sliding_window_size,
          "Tokens visible to attention in layers with an even index, including the token itself")
      .at_least(1);
  shared.vocab_size()
      .norm_eps()
      .rope_theta()
      .yarn()
      .max_position_embeddings()
      .depth_init("Initialize weights with a smaller std in deeper layers; false: by n_layers")
      .attn_type("sdpa: over the whole row; flex and varlen: within documents")
      .balance();
}

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin
      .add<GptOss>(
          "gpt_oss",
          "gpt-oss: experts with biases, sinks in attention, a window in every second layer.")
      .options(declare_options);

  plugin.add_flavor(
      "gpt_oss", "debugmodel", "183 million parameters, for tests and first runs",
      {{"dim", 256}, {"n_layers", 4}, {"num_experts", 8}, {"load_balance_coeff", 1e-3}});
  plugin.add_flavor("gpt_oss", "20b", "gpt-oss 20b", {{"load_balance_coeff", 1e-3}});
  plugin.add_flavor("gpt_oss", "120b", "gpt-oss 120b",
                    {{"n_layers", 36}, {"num_experts", 128}, {"load_balance_coeff", 1e-3}});
}
