// What others call the weights of a DenseTransformer: transformers, torchtitan, Meta.
#pragma once

#include <vector>

#include <titan/hf_exchange.h>

#include "dense_transformer.h"

namespace titan::models {

/// How the rows of queries and keys lie there: what rotates together is half a head apart, as here,
/// or side by side.
enum class RotaryRows { halves, pairs };

/// One rule for each parameter, and for the matrix of a tied network one more: a head that is
/// written out is the embedding under another name.
std::vector<HfExchange::NameRule> hugging_face_rules(const DenseTransformer& network);

/// torchtitan v0.2.2 has Meta's names; `with_newer` adds those that torchtitan took later.
std::vector<HfExchange::NameRule> meta_rules(const DenseTransformer& network, RotaryRows rows,
                                             bool with_newer);

}  // namespace titan::models
