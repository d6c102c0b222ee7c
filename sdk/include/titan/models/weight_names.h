// What others call the weights of a Transformer: transformers, torchtitan, Meta.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <titan/export.h>
#include <titan/hf_exchange.h>
#include <titan/models/transformer.h>

TITAN_OPTIONAL_HEADER(models_weight_names);

namespace titan::models {

/// How the rows of queries and keys lie there: what rotates together is half a head apart, as here,
/// or side by side.
enum class RotaryRows { halves, pairs };

/// One weight of a block; names without "layers.N." before and ".weight" behind.
struct BlockWeight {
  enum Rows { plain, of_queries, of_keys, of_one_head };
  const char* ours;  // Meta and torchtitan v0.2.2 use the same
  const char* hugging_face;
  const char* newer_torchtitan = nullptr;  // null: unchanged
  Rows rows = plain;
};

/// What transformers calls the parts of a mixture, within a block and without ".weight" behind.
/// Each expert's matrices are tensors of their own there.
struct MixtureNames {
  const char* gate = "mlp.gate";
  const char* experts = "mlp.experts";
  const char* w1 = "gate_proj";
  const char* w2 = "down_proj";
  const char* w3 = "up_proj";
  const char* shared = "mlp.shared_experts";
  /// With ".weight" and all: the bias of the choice; null: there is no place for it.
  const char* expert_bias = nullptr;
};

/// The parts of a model's names that are not the family's.
struct WeightNames {
  /// How torchtitan and Meta have the rows of queries and keys; none: such weights are not known.
  std::optional<RotaryRows> torchtitan = {};
  std::optional<RotaryRows> meta = {};
  bool has_hugging_face = true;  ///< false: transformers has no place for these weights
  MixtureNames mixture = {};
  /// In the place of nn::Attention's weights; empty: those.
  std::vector<BlockWeight> attention = {};
  /// Of the feed-forward of layers without a mixture; empty: the family's.
  std::vector<BlockWeight> feed_forward = {};
  RotaryRows rows = RotaryRows::halves;  ///< of Hugging Face's
  /// Before Hugging Face's names; an export takes the first.
  std::vector<const char*> prefixes = {""};
  /// Makes the rules of a layer's mixture in the place of `mixture`. `ours` ends in a dot.
  std::function<std::vector<HfExchange::NameRule>(const std::string& ours,
                                                  const std::string& theirs)>
      mixture_rules = {};
  /// Of scales: appended to the name of a tensor that may be in fewer bits; null: none are.
  const char* scales = nullptr;
  /// Makes torchtitan's rules where they are not Meta's.
  std::function<std::vector<HfExchange::NameRule>()> torchtitan_rules = {};

  /// HfExchange::ignored_names of Hugging Face's, tables of rotary positions, and of the others'.
  std::vector<std::string> ignored = {"rotary_emb.inv_freq"};
  std::vector<std::string> ignored_elsewhere = {};
  /// Makes more of Hugging Face's.
  std::function<std::vector<std::string>()> also_ignored = {};
};

/// As HfExchange::name_rules. One rule for each parameter, for a stack of experts one each, and for
/// the matrix of a tied network one more: a head that is written out is the embedding under another
/// name. torchtitan v0.2.2 has Meta's names, and later ones are read as well.
TITAN_API std::vector<HfExchange::NameRule> name_rules(const Transformer& network,
                                                       const WeightNames& names, Naming naming);
/// As HfExchange::ignored_names.
TITAN_API std::vector<std::string> ignored_names(const WeightNames& names, Naming naming);

}  // namespace titan::models
