// Registers the model qwen3 and the flavors of torchtitan v0.2.2.
#include <titan/plugin.h>

#include "options.h"

namespace {

using titan::qwen3::Qwen3;
using O = titan::qwen3::Qwen3Options;

void declare_options(titan::ComponentBuilder<Qwen3>& builder) {
  auto shared = titan::models::shared_options<O>(builder);
  shared.sizes();
  builder.option("hidden_dim", &O::hidden_dim, "Width of the feed-forward, without experts")
      .at_least(1)
      .option("num_experts", &O::num_experts,
              "Experts of each layer, instead of the feed-forward; 0 = none")
      .at_least(0);
  shared.top_k()
      .moe_hidden_dim()
      .vocab_size()
      .norm_eps("Epsilon of the normalisations, those of queries and keys too")
      .rope_theta()
      .max_position_embeddings()
      .depth_init()
      .enable_weight_tying()
      .attn_type()
      .balance();
  builder.check([](const O& own, const titan::JobView& job, titan::RuleReport& report) {
    titan::models::check_balance(own, job, report);
    for (const auto& [name, is_set] : {std::pair("load_balance_coeff", own.load_balance_coeff > 0),
                                       std::pair("load_balance_loss", own.load_balance_loss > 0),
                                       std::pair("router_z_loss", own.router_z_loss > 0),
                                       std::pair("force_load_balance", own.force_load_balance)})
      if (is_set && own.num_experts == 0)
        report.error(name, "the model has no experts",
                     "choose a flavor with experts, or set model.num_experts");
  });
}

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin
      .add<Qwen3>("qwen3", "Qwen3: Llama's network with normalised queries and keys, and experts.")
      .options(declare_options);

  plugin.add_flavor("qwen3", "debugmodel", "32 million parameters, for tests and first runs",
                    {{"dim", 256},
                     {"n_layers", 8},
                     {"n_heads", 16},
                     {"hidden_dim", 3072},
                     {"vocab_size", 2048},
                     {"enable_weight_tying", true}});
  plugin.add_flavor("qwen3", "0.6B", "Qwen3 0.6B",
                    {{"dim", 1024},
                     {"n_layers", 28},
                     {"n_heads", 16},
                     {"hidden_dim", 3072},
                     {"enable_weight_tying", true}});
  plugin.add_flavor("qwen3", "1.7B", "Qwen3 1.7B",
                    {{"dim", 2048},
                     {"n_layers", 28},
                     {"n_heads", 16},
                     {"hidden_dim", 6144},
                     {"enable_weight_tying", true}});
  plugin.add_flavor("qwen3", "4B", "Qwen3 4B",
                    {{"dim", 2560},
                     {"n_layers", 36},
                     {"n_heads", 32},
                     {"hidden_dim", 9728},
                     {"enable_weight_tying", true}});
  plugin.add_flavor("qwen3", "8B", "Qwen3 8B",
                    {{"dim", 4096}, {"n_layers", 36}, {"n_heads", 32}, {"hidden_dim", 12288}});
  plugin.add_flavor("qwen3", "14B", "Qwen3 14B",
                    {{"dim", 5120}, {"n_layers", 40}, {"n_heads", 40}, {"hidden_dim", 17408}});
  plugin.add_flavor("qwen3", "32B", "Qwen3 32B",
                    {{"dim", 5120}, {"n_layers", 64}, {"n_heads", 64}, {"hidden_dim", 25600}});

  plugin.add_flavor(
      "qwen3", "debugmodel_moe", "64 experts of which 8 are used, for tests",
      {{"dim", 256}, {"n_layers", 8}, {"n_heads", 16}, {"vocab_size", 2048}, {"num_experts", 64}});
  plugin.add_flavor("qwen3", "30B-A3B", "Qwen3 30B-A3B",
                    {{"dim", 2048},
                     {"n_layers", 48},
                     {"n_heads", 32},
                     {"n_kv_heads", 4},
                     {"hidden_dim", 6144},
                     {"num_experts", 128}});
  plugin.add_flavor("qwen3", "235B-A22B", "Qwen3 235B-A22B",
                    {{"dim", 4096},
                     {"n_layers", 94},
                     {"n_heads", 64},
                     {"n_kv_heads", 4},
                     {"hidden_dim", 12288},
                     {"num_experts", 128},
                     {"moe_hidden_dim", 1536},
                     {"rope_theta", 5000000.0}});
}
