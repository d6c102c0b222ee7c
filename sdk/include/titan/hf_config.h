// Compares two config.json of Hugging Face by those members that change results. Used by models
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
  /// What transformers takes when it is not there; null: nothing.
  Value absent = {};
  /// Instead of `absent`: what follows from other members then.
  std::function<Value(const Value& config)> derived = {};
};

/// `config` with the keys that say how positions are rotated beside the others, out of rope_scaling
/// (transformers 4) and rope_parameters (transformers 5). A scaling that does nothing (type
/// "default", or "llama3" with factor 1) counts as none.
TITAN_API Value hf_flattened_rope(Value config);

/// Those that say how positions are rotated, as hf_flattened_rope leaves them.
TITAN_API std::vector<HfMember> hf_rope_members();

/// The members whose values differ, in the order of `members`: "rope_theta is 10000.0 there and
/// 500000.0 here". Numbers are equal by value: 1 is 1.0.
TITAN_API std::vector<std::string> hf_config_differences(const std::vector<HfMember>& members,
                                                         const Value& ours, const Value& theirs);

}  // namespace titan
