#include "grouped_converter.h"

#include <memory>

#include <titan/log.h>

#include "../common/grouped_choice.h"
#include "../common/quantized_grouped.h"
#include "converter.h"
#include "products.h"

namespace titan::float8 {
namespace {

constexpr const char* kGroupedName = "quantize.grouped_mm.float8";

}  // namespace

void Float8GroupedConverter::apply(ModelPart& part, const TransformContext& context) {
  const Arithmetic arithmetic =
      options_.emulate ? Arithmetic::by_definition : Arithmetic::by_device;
  check_multiplies(arithmetic, kGroupedName, context.device);
  const Recipe recipe = find_recipe("rowwise");
  const quantized::GroupedChoice choice = quantized::choose_grouped(
      part, {.converter = kGroupedName,
             .recipe = recipe.name + (options_.emulate ? ", emulated" : ""),
             .fqns = options_.fqns});
  const auto products = std::make_shared<const Float8Products>(recipe, nullptr, arithmetic);
  for (nn::GroupedLinear* layer : choice.layers)
    layer->set_kernel(kGroupedName, std::make_unique<quantized::QuantizedGroupedKernel>(products));
  if (context.mesh.rank() == 0) log::info(choice.summary);
}

}  // namespace titan::float8
