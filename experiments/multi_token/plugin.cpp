// Registers a Llama with future heads, and the command that drafts with them.
#include <titan/models/shared_options.h>
#include <titan/plugin.h>

#include "future_heads.h"
#include "speculate.h"

namespace multi_token {

using namespace titan;  // NOLINT: small

struct Options {
  int64_t dim = 128;
  int64_t n_layers = 4;
  int64_t n_heads = 8;
  std::optional<int64_t> n_kv_heads;
  std::optional<int64_t> head_dim;
  int64_t multiple_of = 128;
  int64_t vocab_size = 2048;
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  int64_t max_position_embeddings = 4096;
  bool depth_init = false;
  models::AttentionType attn_type = models::AttentionType::sdpa;
  int64_t future_heads = 2;
  double future_weight = 0.3;
};

class MultiToken final : public Model {
 public:
  MultiToken(const Options& o, ModelContext context)
      : o_(o), network_(models::shared_network(o, context)) {
    const int64_t width = 2 * (4 * o.dim) / 3;
    network_.ffn_dim = (width + o.multiple_of - 1) / o.multiple_of * o.multiple_of;
  }

  std::vector<Layer> build() const override {
    std::vector<Layer> layers = models::build_layers(network_);
    const FutureOptions future{.count = o_.future_heads, .weight = o_.future_weight};
    layers.back() = {"output", std::make_unique<FutureHeads>(network_, future), ""};
    return layers;
  }
  /// Of training: each future head is a block and a projection.
  Flops flops_per_token(int64_t seq_len) const override {
    models::Transformer whole = network_;
    whole.n_layers += o_.future_heads;
    Flops flops = models::flops_per_token(whole, seq_len);
    const auto projections = static_cast<double>(6 * o_.future_heads * o_.vocab_size * o_.dim);
    flops.full_attention += projections;
    flops.causal_half += projections;
    return flops;
  }
  bool isolates_documents() const override { return network_.isolates_documents; }
  int64_t vocab_size() const override { return o_.vocab_size; }

 private:
  Options o_;
  models::Transformer network_;
};

void declare_options(ComponentBuilder<MultiToken>& builder) {
  auto shared = models::shared_options<Options>(builder);
  shared.sizes();
  builder
      .option("multiple_of", &Options::multiple_of,
              "The feed-forward width, 8/3 of dim, is rounded up to a multiple of this")
      .at_least(1)
      .option("future_heads", &Options::future_heads,
              "Heads in addition to the main one; head k predicts the token k places later")
      .at_least(0)
      .option("future_weight", &Options::future_weight,
              "Factor of the mean loss of these heads, which is added to the main loss")
      .at_least(0);
  shared.vocab_size().norm_eps().rope_theta().max_position_embeddings().depth_init().attn_type();
}

}  // namespace multi_token

TITAN_PLUGIN(plugin) {
  plugin.add<multi_token::MultiToken>("maintainers/multi_token", "A Llama that also predicts later tokens.")
      .options(multi_token::declare_options);
  plugin.add_flavor("maintainers/multi_token", "debugmodel", "1.4 million parameters and 0.2 million per head",
                    {{"dim", 128}});

  using O = multi_token::SpeculateOptions;
  auto& command =
      plugin.add<multi_token::Speculate>("maintainers/speculate", "generate text greedily with tokens drafted by future heads")
          .option("checkpoint", &O::checkpoint, "a Titan checkpoint, or a folder of checkpoints (the newest one)")
          .option("prompt", &O::prompt, "text to continue; may be given several times")
          .option("prompts", &O::prompts, "file with a prompt per line")
          .option("max_new_tokens", &O::max_new_tokens, "maximum number of new tokens per prompt")
          .at_least(1)
          .option("repeats", &O::repeats, "generate this often, to measure the speed")
          .at_least(1)
          .option("ignore_eos", &O::ignore_eos, "continue after the model's end-of-text token")
          .option("compare", &O::compare, "also decode greedily: fail unless ids and text are equal, and print both speeds");
  titan::declare_rank_flags<O>(command);
}
