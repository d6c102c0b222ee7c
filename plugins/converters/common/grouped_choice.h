// Which layers of experts a converter takes. Used by the float8 and mx converters of grouped
// products.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/model.h>
#include <titan/nn/grouped_linear.h>

namespace titan::quantized {

/// What a converter takes.
struct GroupedRules {
  std::string converter;          ///< its name, for messages
  std::string recipe;             ///< and how it computes, for the log
  std::vector<std::string> fqns;  ///< [quantize.grouped_mm...] fqns: a part of a layer's path
  int64_t multiple = 16;          ///< that both dimensions of an expert must be of
};

struct GroupedChoice {
  std::vector<nn::GroupedLinear*> layers;  ///< in the model's order
  std::string summary;                     ///< for the log: how many, and how many are left alone
};

/// The grouped layers of `part` that `rules.fqns` name. Throws a config Error when there are none
/// in the model, when nothing is named or a name matches none, when a named one does not divide,
/// and when one computes by somebody else's kernel already.
GroupedChoice choose_grouped(ModelPart& part, const GroupedRules& rules);

}  // namespace titan::quantized
