// What the name rules of a model say in all: of which parts each parameter is made, of which an
// export makes each tensor of others, and whether anything is left out or meant twice. Used
// wherever weights of others are taken or made.
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
  /// By our name: the ways to put the parameter together, the preferred one first.
  std::map<std::string, std::vector<TensorParts>> alternatives;
  /// By their name: as large as the rules make it.
  std::map<std::string, std::vector<int64_t>> shapes;
  /// Their name and what an export makes it of, by the first alternatives, in the order of the
  /// rules; a source is one of our names.
  std::vector<std::pair<std::string, TensorParts>> exports;
};

/// `parameters`: of the model, with what converters added, which need no rules.
///
/// Throws one plugin Error that lists all that is wrong: rules for what is no parameter, cuts
/// outside of a tensor, parts whose shapes differ, elements that no rule or two rules speak of.
/// `model_name` stands in it.
RuleLayout lay_out_rules(const std::vector<ParameterInfo>& parameters,
                         const std::vector<HfExchange::NameRule>& rules,
                         const std::string& model_name);

/// Lays out the rules of every naming that the model knows, when it is made. Nothing for a model
/// without HfExchange. Throws as lay_out_rules, and a plugin Error for a parameter without a rule.
void check_name_rules(const Model& model, const ModelPart& part, const std::string& model_name);

}  // namespace titan::core
