// Float8 recipes as data: formats and scaling of the three products of a layer. Used by the
// converter and Float8Products.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "quantize.h"

namespace titan::float8 {

/// The elements that share one scale.
enum class Granularity {
  tensor,  ///< the whole operand; of a weight: its shards on all ranks
  row,     ///< a row or column along the summed dimension of the product
};

struct Operand {
  at::ScalarType format = at::kFloat8_e4m3fn;
  Granularity granularity = Granularity::tensor;
};

/// Unset `operands`: the product is made in high precision.
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

/// Whether a weight (out, in) is too small for a speedup by float8 with this recipe: torchao's rule
/// "auto_filter_small_kn", measured on H100. Throws a config Error for a recipe without a rule.
bool is_too_small(const Recipe& recipe, int64_t out, int64_t in);

}  // namespace titan::float8
