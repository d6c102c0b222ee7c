// What others call the weights of a Transformer: transformers, torchtitan, Meta.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <titan/hf_exchange.h>

#include "transformer.h"

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

/// What a model's names are made of, where it is not all of Llama's.
struct WeightNames {
  MixtureNames mixture = {};
  /// In the place of nn::Attention's weights; empty: those.
  std::vector<BlockWeight> attention = {};
  /// Of the feed-forward of layers without a mixture, in the place of Llama's; empty: those.
  std::vector<BlockWeight> feed_forward = {};
  RotaryRows rows = RotaryRows::halves;  ///< of Hugging Face's
  const char* prefix = "";               ///< before Hugging Face's names: "language_model."
  /// Makes the rules of a layer's mixture in the place of `mixture`. `ours` ends in a dot.
  std::function<std::vector<HfExchange::NameRule>(const std::string& ours,
                                                  const std::string& theirs)>
      mixture_rules = {};
  /// Of scales: appended to the name of a tensor that may be in fewer bits; null: none are.
  const char* scales = nullptr;
};

/// One rule for each parameter, for a stack of experts one each, and for the matrix of a tied
/// network one more: a head that is written out is the embedding under another name.
std::vector<HfExchange::NameRule> hugging_face_rules(const Transformer& network,
                                                     const WeightNames& names = {});

/// torchtitan v0.2.2 has Meta's names; `with_newer` adds those that torchtitan took later.
std::vector<HfExchange::NameRule> meta_rules(const Transformer& network, RotaryRows rows,
                                             bool with_newer, const WeightNames& names = {});

}  // namespace titan::models
