// Chooses the linear layers of a model that a converter changes, and explains the choice in the
// log. Used by the float8 and mx converters.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <titan/model.h>
#include <titan/nn/linear.h>

namespace titan::quantized {

/// The layers that a converter leaves unchanged.
struct ChoiceRules {
  std::string converter;             ///< its name, for messages
  std::string recipe;                ///< its recipe, for the log
  std::vector<std::string> filters;  ///< [quantize...] filter_fqns: a part of a layer's path
  int64_t multiple = 16;             ///< both dimensions must be multiples of this
  /// Whether a weight (out, in) is too small for a speedup; unset: none is.
  std::function<bool(int64_t out, int64_t in)> is_too_small = {};
};

/// The layers that a converter changes.
struct Choice {
  std::vector<nn::Linear*> linears;  ///< in the model's order
  std::string summary;               ///< for the log: how many, and why the others are not
};

/// The linear layers of `part` to convert; the head is never among them. Throws a config Error if a
/// filter matches neither a linear layer nor the head, if no layer is left, or if a chosen layer
/// has a kernel owner already.
Choice choose_linears(ModelPart& part, const ChoiceRules& rules);

}  // namespace titan::quantized
