// The options that models of the transformer family share: one name, one help text and one limit
// each. A model keeps its own struct and defaults, and declares only its additional options itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <titan/export.h>
#include <titan/models/balance_options.h>
#include <titan/models/rope_scaling.h>
#include <titan/models/transformer.h>
#include <titan/plugin.h>

TITAN_OPTIONAL_HEADER(models_shared_options);

namespace titan::models {

/// The names of torchtitan v0.2.2. `sdpa` attends over the whole sequence; `flex` and `varlen`
/// share one implementation that isolates documents.
enum class AttentionType { sdpa, flex, varlen };

/// Each call declares the options in its name from equally named members of `Options`. The order of
/// the calls is the order in which users see the options. A model with a different meaning passes
/// its own `help`.
template <class Options, class Builder>
class SharedOptions {
 public:
  explicit SharedOptions(Builder& builder) : builder_(builder) {}

  /// dim, n_layers, n_heads, n_kv_heads and head_dim. If their members are std::optional, the last
  /// two default to values derived from the others.
  SharedOptions& sizes() {
    dim().n_layers();
    builder_.option("n_heads", &Options::n_heads, "Number of query heads").at_least(1);
    const std::string heads = "Number of key and value heads", width = "Width of one head";
    builder_
        .option("n_kv_heads", &Options::n_kv_heads,
                may_be_unset(&Options::n_kv_heads) ? heads + "; unset = n_heads" : heads)
        .at_least(1)
        .option("head_dim", &Options::head_dim,
                width + (may_be_unset(&Options::head_dim) ? "; unset = dim / n_heads"
                                                          : ", independent of dim and n_heads"))
        .at_least(2);
    return *this;
  }
  SharedOptions& dim() {
    builder_.option("dim", &Options::dim, "Width of the residual stream").at_least(1);
    return *this;
  }
  SharedOptions& n_layers() {
    builder_.option("n_layers", &Options::n_layers, "Number of transformer blocks").at_least(1);
    return *this;
  }
  SharedOptions& vocab_size() {
    builder_.option("vocab_size", &Options::vocab_size, "Rows of the embedding and of the head")
        .at_least(1);
    return *this;
  }

  SharedOptions& num_experts(std::string help = "Number of experts per layer") {
    builder_.option("num_experts", &Options::num_experts, std::move(help)).at_least(1);
    return *this;
  }
  SharedOptions& top_k() {
    builder_.option("top_k", &Options::top_k, "Number of experts per token").at_least(1);
    return *this;
  }
  SharedOptions& moe_hidden_dim() {
    builder_.option("moe_hidden_dim", &Options::moe_hidden_dim, "Hidden width of one expert")
        .at_least(1);
    return *this;
  }
  /// The options of BalanceOptions and their check. A model with its own check
  /// (ComponentBuilder::check) calls check_balance in it.
  SharedOptions& balance() {
    declare_balance<Options>(builder_);
    builder_.check([](const Options& own, const JobView& job, RuleReport& report) {
      check_balance(own, job, report);
    });
    return *this;
  }

  SharedOptions& norm_eps(std::string help = "Epsilon of the normalisations") {
    builder_.option("norm_eps", &Options::norm_eps, std::move(help)).greater_than(0);
    return *this;
  }
  SharedOptions& rope_theta() {
    builder_.option("rope_theta", &Options::rope_theta, "Base of the rotary wavelengths")
        .greater_than(1);
    return *this;
  }
  SharedOptions& rope_scaling(std::string help) {
    builder_.table("rope_scaling", &Options::rope_scaling, std::move(help), declare_rope_scaling);
    return *this;
  }
  /// rope_factor, original_seq_len, beta_fast and beta_slow.
  SharedOptions& yarn(
      std::string help_of_factor = "YaRN: factor by which long wavelengths are stretched") {
    builder_.option("rope_factor", &Options::rope_factor, std::move(help_of_factor))
        .at_least(1)
        .option("original_seq_len", &Options::original_seq_len,
                "YaRN: original context length, with which wavelengths are compared")
        .at_least(1)
        .option(
            "beta_fast", &Options::beta_fast,
            "YaRN: wavelengths with more rotations than this in original_seq_len stay unchanged")
        .greater_than(0)
        .option("beta_slow", &Options::beta_slow,
                "YaRN: wavelengths with fewer rotations than this are stretched by the full factor")
        .greater_than(0);
    return *this;
  }
  SharedOptions& max_position_embeddings() {
    builder_
        .option(
            "max_position_embeddings", &Options::max_position_embeddings,
            "Maximum sequence length of the weights, as written to the exported config.json; at "
            "least training.seq_len")
        .at_least(1);
    return *this;
  }

  SharedOptions& depth_init(
      std::string help =
          "Reduce the scale of output projections with depth (else one scale, by n_layers)") {
    builder_.option("depth_init", &Options::depth_init, std::move(help));
    return *this;
  }
  SharedOptions& enable_weight_tying() {
    builder_.option("enable_weight_tying", &Options::enable_weight_tying,
                    "Embedding and head share one matrix");
    return *this;
  }
  SharedOptions& attn_type(
      std::string help =
          "sdpa: causal over the whole sequence; flex and varlen: within documents") {
    builder_.option("attn_type", &Options::attn_type, std::move(help),
                    {{"sdpa", AttentionType::sdpa},
                     {"flex", AttentionType::flex},
                     {"varlen", AttentionType::varlen}});
    return *this;
  }

 private:
  template <class Member>
  static constexpr bool may_be_unset(Member Options::*) {
    return std::is_same_v<Member, std::optional<int64_t>>;
  }

  Builder& builder_;
};

template <class Options, class Builder>
SharedOptions<Options, Builder> shared_options(Builder& builder) {
  return SharedOptions<Options, Builder>(builder);
}

/// The fields of Transformer that these options determine, each if `Options` has it; the model sets
/// the rest. Throws as head_sizes.
template <class Options>
Transformer shared_network(const Options& o, const ModelContext& context) {
  Transformer network = {.dim = o.dim,
                         .n_layers = o.n_layers,
                         .n_heads = o.n_heads,
                         .vocab_size = o.vocab_size,
                         .norm_eps = o.norm_eps,
                         .rope = {.theta = o.rope_theta},
                         .depth_init = o.depth_init};
  network.max_position_embeddings = std::max(context.seq_len, o.max_position_embeddings);
  if constexpr (requires { o.head_dim; }) {
    const HeadSizes heads = head_sizes(o.dim, o.n_heads, o.n_kv_heads, o.head_dim);
    network.n_kv_heads = heads.n_kv_heads;
    network.head_dim = heads.head_dim;
  }
  if constexpr (requires { o.enable_weight_tying; }) network.is_tied = o.enable_weight_tying;
  if constexpr (requires { o.attn_type; })
    network.isolates_documents = o.attn_type != AttentionType::sdpa;
  return network;
}

}  // namespace titan::models
