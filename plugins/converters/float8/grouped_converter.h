// Converter quantize.grouped_mm.float8: layers of experts multiply in float8 while their weights
// stay as they are.
#pragma once

#include <string>
#include <vector>

#include <titan/transform.h>

namespace titan::float8 {

struct Float8GroupedOptions {
  std::vector<std::string> fqns;  // layers of experts, by a part of their path
  bool emulate = false;
};

/// Each expert computes as a linear layer under the recipe "rowwise" does: e4m3, a scale for each
/// line along what a product adds up over, rounded down to a power of two. So of x and of gradients
/// each row has its scale, of a weight each expert's row or column, and for a weight's gradient
/// each column of an expert's tokens. As torchao trains experts (_Float8GroupedMM).
class Float8GroupedConverter final : public Converter {
 public:
  Float8GroupedConverter(const Float8GroupedOptions& options, TransformContext)
      : options_(options) {}

  Phase phase() const override { return Phase::convert; }
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  Float8GroupedOptions options_;
};

}  // namespace titan::float8
