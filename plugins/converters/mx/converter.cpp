#include "converter.h"

#include <ATen/ops/mm.h>
#include <titan/error.h>
#include <titan/log.h>

#include "../common/linear_choice.h"

namespace titan::mx {
namespace {

using at::Tensor;

constexpr const char* kName = "quantize.linear.mx";

}  // namespace

Recipe find_recipe(const std::string& name) {
  if (name == "mxfp8_cublas") return {Rounding::floor, false};
  if (name == "mxfp8_cublas_rceil") return {Rounding::rceil, false};
  if (name == "mxfp8_emulated") return {Rounding::floor, true};
  TITAN_CHECK(name == "mxfp8_emulated_rceil", config, kName, ".recipe_name: there is no recipe '",
              name,
              "'; choose mxfp8_cublas, mxfp8_cublas_rceil, mxfp8_emulated or mxfp8_emulated_rceil");
  return {Rounding::rceil, true};
}

void check_multiplies(const Recipe& recipe, Device& device, const WayOut& way_out) {
  TITAN_CHECK(recipe.is_emulated || multiplies_mxfp8(device.device()), config, way_out.converter,
              ": this device (", device.description(),
              ") does not multiply in MXFP8, which needs a GPU of compute capability 10 or more; "
              "set ",
              way_out.converter, ".recipe_name = \"", way_out.recipe, "\"");
}

/// left (m, k) · right (n, k)ᵀ
Tensor MxProducts::multiply(const Tensor& left, const Tensor& right) const {
  const Rounding rounding = recipe_.rounding;
  if (recipe_.is_emulated)
    return at::mm(round_trip(left, rounding), round_trip(right, rounding).t());
  return multiply_by_device(quantize(left, rounding), quantize(right, rounding),
                            left.scalar_type());
}

Tensor MxProducts::output(const Tensor& x, const Tensor& weight, const Tensor&) const {
  return multiply(x, weight);
}

Tensor MxProducts::grad_input(const Tensor& grad, const Tensor& weight) const {
  return multiply(grad, weight.t());
}

Tensor MxProducts::grad_weight(const Tensor& grad, const Tensor& x) const {
  return multiply(grad.t(), x.t());
}

void MxConverter::apply(ModelPart& part, const TransformContext& context) {
  const bool rounds_down = recipe_.rounding == Rounding::floor;
  check_multiplies(
      recipe_, context.device,
      {.converter = kName, .recipe = rounds_down ? "mxfp8_emulated" : "mxfp8_emulated_rceil"});
  const quantized::Choice choice = quantized::choose_linears(part, {.converter = kName,
                                                                    .recipe = options_.recipe_name,
                                                                    .filters = options_.filter_fqns,
                                                                    .multiple = kBlock});
  const auto products = std::make_shared<const MxProducts>(recipe_);
  for (nn::Linear* linear : choice.linears)
    linear->set_kernel(kName, std::make_unique<quantized::QuantizedKernel>(products));
  if (context.mesh.rank() == 0) log::info(choice.summary);
}

}  // namespace titan::mx
