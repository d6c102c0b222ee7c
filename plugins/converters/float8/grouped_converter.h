// Converter quantize.grouped_mm.float8: layers of experts multiply in float8; the stored weights
// stay unchanged.
#pragma once

#include <string>
#include <vector>

#include <titan/transform.h>

namespace titan::float8 {

struct Float8GroupedOptions {
  std::vector<std::string> fqns;  // layers of experts, by a part of their path
  bool emulate = false;
};

/// Each expert computes as a linear layer with the recipe "rowwise": e4m3 with one scale for each
/// row or column along the summed dimension, rounded down to a power of two. So each row of x and
/// of a gradient has a scale, each row or column of an expert's weight, and for a weight's gradient
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
