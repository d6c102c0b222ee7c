#include "grouped_converter.h"

#include <memory>

#include <titan/error.h>
#include <titan/log.h>

#include "../common/grouped_choice.h"
#include "../common/quantized_grouped.h"

namespace titan::mx {
namespace {

constexpr const char* kGroupedName = "quantize.grouped_mm.mx";

}  // namespace

Recipe find_grouped_recipe(const std::string& name) {
  if (name == "mxfp8") return {Rounding::rceil, false};
  TITAN_CHECK(name == "mxfp8_emulated", config, kGroupedName, ".recipe_name: there is no recipe '",
              name, "'; choose mxfp8 or mxfp8_emulated");
  return {Rounding::rceil, true};
}

void MxGroupedConverter::apply(ModelPart& part, const TransformContext& context) {
  check_multiplies(recipe_, context.device,
                   {.converter = kGroupedName, .recipe = "mxfp8_emulated"});
  const quantized::GroupedChoice choice =
      quantized::choose_grouped(part, {.converter = kGroupedName,
                                       .recipe = options_.recipe_name,
                                       .fqns = options_.fqns,
                                       .multiple = kBlock});
  const auto products = std::make_shared<const MxProducts>(recipe_);
  for (nn::GroupedLinear* layer : choice.layers)
    layer->set_kernel(kGroupedName, std::make_unique<quantized::QuantizedGroupedKernel>(products));
  if (context.mesh.rank() == 0) log::info(choice.summary);
}

}  // namespace titan::mx
