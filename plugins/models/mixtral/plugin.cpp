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
      .option("enable_weight_tying", &O::enable_weight_tying, "Embedding and head share one matrix")
      .option("router_in_float32", &O::router_in_float32,
              "The gate multiplies in float32 where the run computes in 16 bits")
      .option("load_balance_coeff", &O::load_balance_coeff,
              "Change of an expert's bias in a step, for even load without a loss; 0 = no bias. "
              "Hugging Face's format has no place for the bias")
      .at_least(0)
      .option("load_balance_loss", &O::load_balance_loss,
              "Coefficient of the loss of uneven load of each sequence; 0 = none")
      .at_least(0)
      .option("force_load_balance", &O::force_load_balance,
              "Tokens go to experts in turn, whatever their scores: for timing")
      .fed_by("debug.moe_force_load_balance")
      .check([](const O& own, const JobView& job, RuleReport& report) {
        for (const char* axis : {"tp", "cp"})
          if (own.load_balance_loss > 0 && job.ranks(axis) > 1)
            report.error("load_balance_loss",
                         "the loss of uneven load is one of whole sequences, of which ranks of "
                         "tensor and context parallelism hold parts",
                         "use load_balance_coeff, or neither of these parallelisms");
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
