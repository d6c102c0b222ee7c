// Finds a model's weights among stored tensors under another program's names. Used by titan convert
// and to load weights of other programs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <titan/checkpoints/tensor_index.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "core/exchange/shape_text.h"
#include "core/exchange/tensor_part.h"

namespace titan::core {

/// One parameter of the model and the stored parts of which it is assembled.
struct FoundWeight {
  std::string ours;
  std::vector<int64_t> shape;
  TensorParts parts;
  /// Further stored copies, if any; check_copies compares them.
  std::vector<TensorParts> copies = {};
  /// The dtype of a state, which is never converted, by its name in safetensors. Empty for a
  /// weight.
  std::string own_dtype = {};

  /// The dtype in a file whose weights are converted to `dtype`.
  const std::string& kept_dtype(const std::string& dtype) const {
    return own_dtype.empty() ? dtype : own_dtype;
  }
};

/// The names of a naming convention.
struct WeightNames {
  std::vector<HfExchange::NameRule> rules;
  std::vector<std::string> ignored;           ///< as in HfExchange::ignored_names
  std::vector<std::string> ignored_prefixes;  ///< "optim."
  std::set<std::string> optional;             ///< our names for parameters that may be missing
};

/// The model's HfExchange; throws a plugin Error when it has none.
const HfExchange& exchange_of(const Model& model, const std::string& model_name);

/// The names of the weights of `model` in `naming`. Throws a plugin Error when the model has no
/// HfExchange or does not know the naming. `model_name`: for messages.
WeightNames names_of(const Model& model, const std::string& model_name, Naming naming);
/// Titan's own names for all parameters of the model that `part` belongs to, as in a checkpoint.
/// Ignores the optimizer's states.
WeightNames own_names(const ModelPart& part);

/// A sentence that names the states of the model of `part` that a Hugging Face export leaves out;
/// empty: there are none. Throws as names_of.
std::string omitted_states_text(const Model& model, const ModelPart& part,
                                const std::string& model_name);

/// States of the model of `part` that `index` does not hold under any of `names`.
std::set<std::string> missing_states(const ModelPart& part, const WeightNames& names,
                                     const TensorIndex& index);

/// Every parameter of the model of `part`, in its order, except missing optional ones. Throws one
/// data Error that lists all problems: parameters missing in `index`, tensors of another shape or
/// unsupported dtype, tensors that belong to no parameter. `place` and `model_name` name the
/// weights and the model in it. Throws as lay_out_rules.
std::vector<FoundWeight> find_weights(const ModelPart& part, const WeightNames& names,
                                      const TensorIndex& index, const std::string& place,
                                      const std::string& model_name);

}  // namespace titan::core
