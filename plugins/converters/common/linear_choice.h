// Which linear layers of a model a converter takes, and what it says about the others. Used by the
// float8 and mx converters.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <titan/model.h>
#include <titan/nn/linear.h>

namespace titan::quantized {

/// What a converter leaves alone.
struct ChoiceRules {
  std::string converter;             ///< its name, for messages
  std::string recipe;                ///< and how it computes, for the log
  std::vector<std::string> filters;  ///< [quantize...] filter_fqns: a part of a layer's path
  int64_t multiple = 16;             ///< that both dimensions must be of
  /// Whether a weight (out, in) is too small to gain; empty: none is.
  std::function<bool(int64_t out, int64_t in)> is_too_small = {};
};

/// What a converter takes.
struct Choice {
  std::vector<nn::Linear*> linears;  ///< in the model's order
  std::string summary;               ///< for the log: how many, and why not the others
};

/// The linear layers of `part` to convert; the head is never among them. Throws a config Error when
/// a filter matches neither a linear layer nor the head, when nothing is left, and when a layer
/// computes by somebody else's kernel already.
Choice choose_linears(ModelPart& part, const ChoiceRules& rules);

}  // namespace titan::quantized
