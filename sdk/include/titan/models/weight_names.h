// The names of a Transformer's weights in transformers, torchtitan and Meta's format.
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

/// Order of the rows of queries and keys. The two rows that rotate together are half a head apart,
/// as in Titan, or adjacent.
enum class RotaryRows { halves, pairs };

/// One weight of a block; names without the prefix "layers.N." and the suffix ".weight".
struct BlockWeight {
  enum Rows { plain, of_queries, of_keys, of_one_head };
  const char* ours;  // also Meta's and torchtitan v0.2.2's name
  const char* hugging_face;
  const char* newer_torchtitan = nullptr;  // null: unchanged
  Rows rows = plain;
};

/// The names of a mixture's weights in transformers, within a block and without the suffix
/// ".weight". There, each matrix of each expert is a tensor of its own.
struct MixtureNames {
  const char* gate = "mlp.gate";
  const char* experts = "mlp.experts";
  const char* w1 = "gate_proj";
  const char* w2 = "down_proj";
  const char* w3 = "up_proj";
  const char* shared = "mlp.shared_experts";
  /// With its suffix: the bias that steers the router's choice; null: transformers has no place for
  /// it.
  const char* expert_bias = nullptr;
};

/// The weight names that differ between models of the family.
struct WeightNames {
  /// Order of query and key rows in torchtitan and Meta's format; unset: weights in that format are
  /// not supported.
  std::optional<RotaryRows> torchtitan = {};
  std::optional<RotaryRows> meta = {};
  bool has_hugging_face = true;  ///< false: transformers has no place for these weights
  MixtureNames mixture = {};
  /// Replaces the weights of nn::Attention; empty: those.
  std::vector<BlockWeight> attention = {};
  /// Replaces the feed-forward of layers without experts; empty: the family's.
  std::vector<BlockWeight> feed_forward = {};
  RotaryRows rows = RotaryRows::halves;  ///< order in Hugging Face's format
  /// Prefixes of Hugging Face's names; an export uses the first.
  std::vector<const char*> prefixes = {""};
  /// Makes the rules of a layer's mixture instead of `mixture`. `ours` ends in a dot.
  std::function<std::vector<HfExchange::NameRule>(const std::string& ours,
                                                  const std::string& theirs)>
      mixture_rules = {};
  /// Suffix of the scales of a quantized tensor, appended to its name; null: no quantized tensors.
  const char* scales = nullptr;
  /// Makes torchtitan's rules if they differ from Meta's.
  std::function<std::vector<HfExchange::NameRule>()> torchtitan_rules = {};

  /// HfExchange::ignored_names: of Hugging Face's format (tables of rotary positions), and of the
  /// others.
  std::vector<std::string> ignored = {"rotary_emb.inv_freq"};
  std::vector<std::string> ignored_elsewhere = {};
  /// Returns more ignored names of Hugging Face's format.
  std::function<std::vector<std::string>()> also_ignored = {};
};

/// As HfExchange::name_rules. One rule per parameter, one per expert for stacked experts. A tied
/// matrix has an additional rule, because some files store the head as a copy of the embedding
/// under its own name. torchtitan v0.2.2 has Meta's names; the names of later versions are also
/// read.
TITAN_API std::vector<HfExchange::NameRule> name_rules(const Transformer& network,
                                                       const WeightNames& names, Naming naming);
/// As HfExchange::ignored_names.
TITAN_API std::vector<std::string> ignored_names(const WeightNames& names, Naming naming);

}  // namespace titan::models
