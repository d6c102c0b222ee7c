// Compares two Hugging Face config.json files by the members that change results. Used by models
// that exchange weights (titan/hf_exchange.h). No torch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <titan/export.h>
#include <titan/value.h>

TITAN_OPTIONAL_HEADER(hf_config);

namespace titan {

/// A member that changes results.
struct HfMember {
  std::string name;
  /// Default of transformers if the member is missing; null: no default.
  Value absent = {};
  /// Instead of `absent`: computes the default from other members.
  std::function<Value(const Value& config)> derived = {};
};

/// Copies the RoPE keys of rope_scaling (transformers 4) and rope_parameters (transformers 5) to
/// the top level of `config`. A scaling without effect (type "default", or "llama3" with factor 1)
/// counts as none.
TITAN_API Value hf_flattened_rope(Value config);

/// The RoPE members, at the places that hf_flattened_rope gives them.
TITAN_API std::vector<HfMember> hf_rope_members();

/// The members whose values differ, in the order of `members`: "rope_theta is 10000.0 there and
/// 500000.0 here", where "there" is `theirs`. Numbers are compared by value: 1 equals 1.0.
TITAN_API std::vector<std::string> hf_config_differences(const std::vector<HfMember>& members,
                                                         const Value& ours, const Value& theirs);

}  // namespace titan
