// Chooses the layers of experts that a converter changes. Used by the float8 and mx converters of
// grouped products.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/model.h>
#include <titan/nn/grouped_linear.h>

namespace titan::quantized {

/// The converter's settings for the choice.
struct GroupedRules {
  std::string converter;          ///< its name, for messages
  std::string recipe;             ///< its recipe, for the log
  std::vector<std::string> fqns;  ///< [quantize.grouped_mm...] fqns: a part of a layer's path
  int64_t multiple = 16;          ///< both dimensions of an expert must be multiples of this
};

struct GroupedChoice {
  std::vector<nn::GroupedLinear*> layers;  ///< in the model's order
  std::string summary;                     ///< for the log: numbers of converted and other layers
};

/// The grouped layers of `part` that `rules.fqns` name. Throws a config Error if the model has
/// none, if `fqns` is empty or one of them matches no layer, if a chosen layer's dimensions are not
/// multiples, or if it has a kernel owner already.
GroupedChoice choose_grouped(ModelPart& part, const GroupedRules& rules);

}  // namespace titan::quantized
