// Converter quantize.linear.float8: linear layers multiply in float8; the stored weights stay
// unchanged.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/transform.h>

#include "products.h"
#include "recipe.h"
#include "weight_scales.h"

namespace titan::float8 {

struct Float8Options {
  bool enable_fsdp_float8_all_gather = false;
  bool precompute_float8_dynamic_scale_for_fsdp = false;
  std::optional<std::string> recipe_name;  // unset: tensorwise
  std::vector<std::string> filter_fqns;
  bool emulate = false;
};

/// Throws a config Error that names `converter` if `arithmetic` is by_device and `device` does not
/// multiply float8.
void check_multiplies(Arithmetic arithmetic, const std::string& converter, Device& device);

/// Method and recipes: torchao's float8 training; formats of Micikevicius et al., 2022.
class Float8Converter final : public Converter, public AfterOptimizerStep {
 public:
  /// Throws a config Error for an unknown recipe, or one that the float8 all-gather does not
  /// support.
  Float8Converter(const Float8Options& options, TransformContext context);

  Phase phase() const override { return Phase::convert; }
  void apply(ModelPart& part, const TransformContext& context) override;
  void after_optimizer_step() override;

 private:
  void check(const TransformContext& context) const;

  Float8Options options_;
  Recipe recipe_;
  std::shared_ptr<WeightScales> scales_;  // null if the recipe has no tensorwise weight scale
};

}  // namespace titan::float8
