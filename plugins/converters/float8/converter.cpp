#include "converter.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/log.h>

#include "../common/linear_choice.h"
#include "hardware.h"

namespace titan::float8 {
namespace {

constexpr const char* kName = "quantize.linear.float8";
constexpr const char* kAutoFilter = "auto_filter_small_kn";

quantized::ChoiceRules choice_rules(const Float8Options& options, const Recipe& recipe) {
  quantized::ChoiceRules rules{.converter = kName,
                               .recipe = recipe.name + (options.emulate ? ", emulated" : ""),
                               .filters = options.filter_fqns};
  if (std::erase(rules.filters, kAutoFilter) > 0)
    rules.is_too_small = [recipe](int64_t out, int64_t in) {
      return is_too_small(recipe, out, in);
    };
  return rules;
}

}  // namespace

void check_multiplies(Arithmetic arithmetic, const std::string& converter, Device& device) {
  TITAN_CHECK(
      arithmetic == Arithmetic::by_definition || multiplies_float8(device.device()), config,
      converter, ": this device (", device.description(),
      ") does not multiply in float8, which needs a GPU of compute capability 8.9 or more; set ",
      converter, ".emulate = true");
}

Float8Converter::Float8Converter(const Float8Options& options, TransformContext)
    : options_(options), recipe_(find_recipe(options.recipe_name.value_or("tensorwise"))) {
  TITAN_CHECK(!options_.enable_fsdp_float8_all_gather || recipe_.name == "tensorwise", config,
              kName,
              ".enable_fsdp_float8_all_gather works with recipe_name = \"tensorwise\" only, "
              "got '",
              recipe_.name, "'");
}

void Float8Converter::check(const TransformContext& context) const {
  const at::ScalarType dtype = context.compute_dtype;
  TITAN_CHECK(
      !options_.enable_fsdp_float8_all_gather || dtype == at::kFloat || dtype == at::kBFloat16,
      config, kName,
      ".enable_fsdp_float8_all_gather needs "
      "training.mixed_precision_param = \"bfloat16\" or \"float32\": ",
      dtype, " cannot represent all float8 values of small weights");
}

void Float8Converter::apply(ModelPart& part, const TransformContext& context) {
  const Arithmetic arithmetic =
      options_.emulate ? Arithmetic::by_definition : Arithmetic::by_device;
  check_multiplies(arithmetic, kName, context.device);
  check(context);
  const quantized::Choice choice = quantized::choose_linears(part, choice_rules(options_, recipe_));
  if (recipe_.scales_whole_weight())
    scales_ = std::make_shared<WeightScales>(context.mesh, context.device.device(),
                                             context.compute_dtype, recipe_.rounding);
  for (nn::Linear* linear : choice.linears) {
    const auto scale = scales_ ? scales_->add(linear->weight()) : nullptr;
    linear->set_kernel(kName, std::make_unique<quantized::QuantizedKernel>(
                                  std::make_shared<Float8Products>(recipe_, scale, arithmetic)));
    if (options_.enable_fsdp_float8_all_gather)
      linear->weight().set_gather_transform(
          kName, std::make_shared<Float8Gather>(scale, context.compute_dtype));
  }
  if (context.mesh.rank() == 0) log::info(choice.summary);
}

void Float8Converter::after_optimizer_step() {
  if (scales_) scales_->update();
}

}  // namespace titan::float8
