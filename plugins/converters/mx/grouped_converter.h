// Converter quantize.grouped_mm.mx: layers of experts multiply in MXFP8; the stored weights stay
// unchanged.
#pragma once

#include <string>
#include <vector>

#include <titan/transform.h>

#include "converter.h"

namespace titan::mx {

struct MxGroupedOptions {
  std::vector<std::string> fqns;  // layers of experts, by a part of their path
  std::string recipe_name = "mxfp8";
};

/// "mxfp8" as torchao's MXFP8_RCEIL, and "mxfp8_emulated" as its MXFP8_EMULATED_RCEIL. Throws a
/// config Error for another name.
Recipe find_grouped_recipe(const std::string& name);

/// Each expert computes as a linear layer does: both operands of each product in blocks of 32 along
/// the summed dimension. For a weight's gradient that is the tokens of an expert, padded with zeros
/// to a multiple of 32. As torchao trains experts (_MXFP8GroupedMM).
class MxGroupedConverter final : public Converter {
 public:
  /// Throws a config Error for an unknown recipe.
  MxGroupedConverter(const MxGroupedOptions& options, TransformContext)
      : options_(options), recipe_(find_grouped_recipe(options.recipe_name)) {}

  Phase phase() const override { return Phase::convert; }
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  MxGroupedOptions options_;
  Recipe recipe_;
};

}  // namespace titan::mx
