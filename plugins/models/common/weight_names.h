// What others call the weights of a Transformer: transformers, torchtitan, Meta.
#pragma once

#include <vector>

#include <titan/hf_exchange.h>

#include "transformer.h"

namespace titan::models {

/// How the rows of queries and keys lie there: what rotates together is half a head apart, as here,
/// or side by side.
enum class RotaryRows { halves, pairs };

/// What transformers calls the parts of a mixture, within a block and without ".weight" behind.
/// Each expert's matrices are tensors of their own there.
struct MixtureNames {
  const char* gate = "mlp.gate";
  const char* experts = "mlp.experts";
  const char* w1 = "gate_proj";
  const char* w2 = "down_proj";
  const char* w3 = "up_proj";
};

/// One rule for each parameter, for a stack of experts one each, and for the matrix of a tied
/// network one more: a head that is written out is the embedding under another name.
std::vector<HfExchange::NameRule> hugging_face_rules(const Transformer& network,
                                                     const MixtureNames& mixture = {});

/// torchtitan v0.2.2 has Meta's names; `with_newer` adds those that torchtitan took later.
std::vector<HfExchange::NameRule> meta_rules(const Transformer& network, RotaryRows rows,
                                             bool with_newer);

}  // namespace titan::models
