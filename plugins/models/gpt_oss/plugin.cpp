// Registers the model gpt_oss and the flavors that torchtitan v0.2.2 has.
#include <titan/plugin.h>

#include "gpt_oss.h"

namespace {

using titan::gpt_oss::AttentionType;
using titan::gpt_oss::GptOss;
using O = titan::gpt_oss::GptOssOptions;

void declare_options(titan::ComponentBuilder<GptOss>& builder) {
  builder.option("dim", &O::dim, "Width of the residual stream")
      .at_least(1)
      .option("n_layers", &O::n_layers, "Number of transformer blocks")
      .at_least(1)
      .option("n_heads", &O::n_heads, "Number of query heads")
      .at_least(1)
      .option("n_kv_heads", &O::n_kv_heads, "Number of key and value heads")
      .at_least(1)
      .option("head_dim", &O::head_dim, "Width of one head, whatever dim and n_heads are")
      .at_least(2)
      .option("moe_hidden_dim", &O::moe_hidden_dim, "Width within one expert")
      .at_least(1)
      .option("num_experts", &O::num_experts, "Experts of each layer")
      .at_least(1)
      .option("top_k", &O::top_k, "Experts that a token goes to")
      .at_least(1)
      .option("swiglu_limit", &O::swiglu_limit,
              "Gates above it, and ups beyond it either way, are cut off")
      .greater_than(0)
      .option("sliding_window_size", &O::sliding_window_size,
              "Tokens that attention of layers with an even index sees, a token's own among them")
      .at_least(1)
      .option("vocab_size", &O::vocab_size, "Rows of the embedding and of the head")
      .at_least(1)
      .option("norm_eps", &O::norm_eps, "Epsilon of the normalisations")
      .greater_than(0)
      .option("rope_theta", &O::rope_theta, "Base of the rotary wavelengths")
      .greater_than(1)
      .option("rope_factor", &O::rope_factor, "YaRN: long wavelengths are stretched by it")
      .at_least(1)
      .option("original_seq_len", &O::original_seq_len,
              "YaRN: positions that wavelengths are measured against")
      .at_least(1)
      .option("beta_fast", &O::beta_fast,
              "YaRN: wavelengths that fit original_seq_len more often stay")
      .greater_than(0)
      .option("beta_slow", &O::beta_slow,
              "YaRN: wavelengths that fit original_seq_len less often are stretched in full")
      .greater_than(0)
      .option("max_position_embeddings", &O::max_position_embeddings,
              "Longest sequence the weights are meant for, as the exported config.json tells it; "
              "at least training.seq_len")
      .at_least(1)
      .option("depth_init", &O::depth_init,
              "Draw weights narrower in deeper layers (else by n_layers)")
      .option("attn_type", &O::attn_type,
              "sdpa: over the whole row; flex and varlen: within documents",
              {{"sdpa", AttentionType::sdpa},
               {"flex", AttentionType::flex},
               {"varlen", AttentionType::varlen}});
  titan::models::declare_balance<O>(builder);
  builder.check([](const O& own, const titan::JobView& job, titan::RuleReport& report) {
    titan::models::check_balance(own, job, report);
  });
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
