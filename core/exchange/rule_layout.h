// Evaluates the name rules of a model: the parts of which each parameter, and each exported tensor,
// is assembled. Checks that each element is mapped exactly once. Used where weights of other
// programs are imported or exported.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "core/exchange/tensor_part.h"

namespace titan::core {

struct RuleLayout {
  /// By our name: the ways to assemble the parameter, the preferred one first.
  std::map<std::string, std::vector<TensorParts>> alternatives;
  /// By their name: the shape that the rules imply.
  std::map<std::string, std::vector<int64_t>> shapes;
  /// Their name and the parts of which an export assembles it, by the first alternatives, in the
  /// order of the rules. The parts' sources are our names.
  std::vector<std::pair<std::string, TensorParts>> exports;
};

/// `parameters`: of the model, including those that converters added, which need no rules.
///
/// Throws one plugin Error, which names `model_name`, that lists all mistakes: rules for unknown
/// parameters, cuts outside of a tensor, parts whose shapes differ, elements that no rule or two
/// rules map.
RuleLayout lay_out_rules(const std::vector<ParameterInfo>& parameters,
                         const std::vector<HfExchange::NameRule>& rules,
                         const std::string& model_name);

/// Checks the rules of every naming that the model knows; called when the model is made. Does
/// nothing for a model without HfExchange. Throws as lay_out_rules, and a plugin Error for a
/// parameter without a rule.
void check_name_rules(const Model& model, const ModelPart& part, const std::string& model_name);

}  // namespace titan::core
