// What a recipe says about the three products of a layer, as data. Used by the converter and by the
// products.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "quantize.h"

namespace titan::float8 {

/// What shares one scale.
enum class Granularity {
  tensor,  ///< all of the operand; of a weight: all of it on all ranks
  row,     ///< a line along the dimension that the product adds up over
};

struct Operand {
  at::ScalarType format = at::kFloat8_e4m3fn;
  Granularity granularity = Granularity::tensor;
};

/// An unset `operands` product is made in high precision.
struct ProductRecipe {
  struct Operands {
    Operand left, right;
  };
  std::optional<Operands> operands;
};

/// The recipes of torchao: Float8LinearConfig.from_recipe_name.
struct Recipe {
  std::string name;
  ScaleRounding rounding = ScaleRounding::none;
  ProductRecipe output;       ///< x · weightᵀ
  ProductRecipe grad_input;   ///< grad · weight
  ProductRecipe grad_weight;  ///< gradᵀ · x

  bool scales_whole_weight() const {
    return output.operands->right.granularity == Granularity::tensor ||
           grad_input.operands->right.granularity == Granularity::tensor;
  }
};

/// "tensorwise", "rowwise" or "rowwise_with_gw_hp"; throws a config Error for another name.
Recipe find_recipe(std::string_view name);

/// Whether float8 gains nothing for a weight (out, in) under this recipe: torchao's rule
/// "auto_filter_small_kn", measured on H100. Throws a config Error for a recipe without a rule.
bool is_too_small(const Recipe& recipe, int64_t out, int64_t in);

}  // namespace titan::float8
