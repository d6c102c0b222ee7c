// Converter quantize.linear.mx: linear layers multiply in MXFP8; the stored weights stay unchanged.
#pragma once

#include <string>
#include <vector>

#include <titan/transform.h>

#include "../common/quantized_linear.h"
#include "blocks.h"

namespace titan::mx {

struct MxOptions {
  std::string mxfp8_dim1_cast_kernel_choice = "triton";  // no effect: there is one cast
  std::string recipe_name = "mxfp8_cublas";
  std::vector<std::string> filter_fqns = {"output"};
};

/// The meaning of a recipe's name.
struct Recipe {
  Rounding rounding = Rounding::floor;
  bool is_emulated = false;
};
/// "mxfp8_cublas", "mxfp8_cublas_rceil", "mxfp8_emulated" as torchao's, and "mxfp8_emulated_rceil".
/// Throws a config Error for another name.
Recipe find_recipe(const std::string& name);

/// The setting that an error suggests if the device does not multiply MXFP8.
struct WayOut {
  std::string converter, recipe;
};
/// Throws a config Error that suggests `way_out` if the recipe is not emulated and `device` does
/// not multiply MXFP8.
void check_multiplies(const Recipe& recipe, Device& device, const WayOut& way_out);

/// The products of one layer, each operand in blocks along the summed dimension.
class MxProducts final : public quantized::Products {
 public:
  explicit MxProducts(const Recipe& recipe) : recipe_(recipe) {}
  bool uses_maximum(const at::Tensor&) const override { return false; }
  at::Tensor output(const at::Tensor& x, const at::Tensor& weight,
                    const at::Tensor& x_maximum) const override;
  at::Tensor grad_input(const at::Tensor& grad, const at::Tensor& weight) const override;
  at::Tensor grad_weight(const at::Tensor& grad, const at::Tensor& x) const override;

 private:
  at::Tensor multiply(const at::Tensor& left, const at::Tensor& right) const;
  Recipe recipe_;
};

/// Method: Rouhani et al., 2023 (microscaling formats), as torchao trains with it.
class MxConverter final : public Converter {
 public:
  /// Throws a config Error for an unknown recipe.
  MxConverter(const MxOptions& options, TransformContext)
      : options_(options), recipe_(find_recipe(options.recipe_name)) {}

  Phase phase() const override { return Phase::convert; }
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  MxOptions options_;
  Recipe recipe_;
};

}  // namespace titan::mx
