// Finds a model's weights among stored tensors that somebody else named. Used by titan convert and
// to load folders of others.
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

/// One parameter of the model and the stored tensors that it is made of.
struct FoundWeight {
  std::string ours;
  std::vector<int64_t> shape;
  TensorParts parts;
  /// The other ways in which it is stored there, if any: check_copies compares them.
  std::vector<TensorParts> copies = {};
  /// Of a state, which is converted to no other type; as safetensors names it. Empty: of a weight.
  std::string own_dtype = {};

  /// The type that it has in a copy whose weights have `dtype`.
  const std::string& kept_dtype(const std::string& dtype) const {
    return own_dtype.empty() ? dtype : own_dtype;
  }
};

/// Whose weights they are.
struct WeightNames {
  std::vector<HfExchange::NameRule> rules;
  std::vector<std::string> ignored;           ///< as HfExchange::ignored_names has them
  std::vector<std::string> ignored_prefixes;  ///< "optim."
  std::set<std::string> optional;             ///< our names of parameters that may be missing
};

/// Throws a plugin Error when the model has none.
const HfExchange& exchange_of(const Model& model, const std::string& model_name);

/// The names that `naming` gives the weights of `model`. Throws a plugin Error when the model has
/// no exchange or does not know the naming. `model_name` stands in messages.
WeightNames names_of(const Model& model, const std::string& model_name, Naming naming);
/// Titan's own names of all parameters of the model that `part` belongs to, as a checkpoint holds
/// them beside the optimizer's states.
WeightNames own_names(const ModelPart& part);

/// The states of the model that `part` belongs to that an export in Hugging Face's format leaves
/// out, told in a sentence; empty: there are none. Throws as names_of.
std::string told_left_out(const Model& model, const ModelPart& part, const std::string& model_name);

/// States of the model that `part` belongs to that nothing in `index` holds under any of `names`.
std::set<std::string> missing_states(const ModelPart& part, const WeightNames& names,
                                     const TensorIndex& index);

/// Every parameter of the model that `part` belongs to, in its order, except optional ones that are
/// not there. Throws one data Error that lists all that is wrong: parameters that nothing in
/// `index` holds, tensors of another shape or of a type without scales, tensors that belong to no
/// parameter. `place` names the weights in it, `model_name` the model. Throws as lay_out_rules.
std::vector<FoundWeight> find_weights(const ModelPart& part, const WeightNames& names,
                                      const TensorIndex& index, const std::string& place,
                                      const std::string& model_name);

}  // namespace titan::core
