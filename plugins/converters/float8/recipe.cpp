#include "recipe.h"

#include <titan/error.h>

namespace titan::float8 {
namespace {

constexpr at::ScalarType kE4m3 = at::kFloat8_e4m3fn, kE5m2 = at::kFloat8_e5m2;

ProductRecipe product(Operand left, Operand right) {
  return {ProductRecipe::Operands{left, right}};
}

}  // namespace

Recipe find_recipe(std::string_view name) {
  const Operand whole{kE4m3, Granularity::tensor}, wide_whole{kE5m2, Granularity::tensor};
  const Operand row{kE4m3, Granularity::row};
  if (name == "tensorwise")
    return {.name = "tensorwise",
            .output = product(whole, whole),
            .grad_input = product(wide_whole, whole),
            .grad_weight = product(wide_whole, whole)};
  if (name == "rowwise")
    return {.name = "rowwise",
            .rounding = ScaleRounding::down_to_power_of_two,
            .output = product(row, row),
            .grad_input = product(row, row),
            .grad_weight = product(row, row)};
  TITAN_CHECK(name == "rowwise_with_gw_hp", config,
              "quantize.linear.float8.recipe_name: there is no recipe '", name,
              "'; choose tensorwise, rowwise or rowwise_with_gw_hp");
  return {.name = "rowwise_with_gw_hp",
          .rounding = ScaleRounding::down_to_power_of_two,
          .output = product(row, row),
          .grad_input = product(row, whole),
          .grad_weight = {}};
}

bool is_too_small(const Recipe& recipe, int64_t out, int64_t in) {
  if (recipe.name == "tensorwise") return in <= 4096 && out <= 1024;
  TITAN_CHECK(
      recipe.name == "rowwise", config,
      "quantize.linear.float8.filter_fqns: \"auto_filter_small_kn\" has no rule for recipe '",
      recipe.name, "'; name the layers to exclude");
  return out <= 2048 || in <= 1024 || (out <= 4096 && in <= 2048);
}

}  // namespace titan::float8
