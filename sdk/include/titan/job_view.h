// What the options of a plugin may follow from and be checked against: the core's keys and the
// layout. No torch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <titan/export.h>
#include <titan/value.h>

namespace titan {

/// A job whose core keys are known. Lent for the time of a call.
class TITAN_API JobView {
 public:
  virtual ~JobView();
  /// The value of a key of the core, "training.dtype", as it is configured or by default; null
  /// where it is unset. Throws a plugin Error for a key that the core does not have.
  virtual Value core(std::string_view key) const = 0;
  /// [in checks] The value of `option` of another component that the job uses, "converter", "lora",
  /// "rank", as it is given or by default; null where the job does not use it, or it has no such
  /// option, or that is unset. Throws a plugin Error where options are only being worked out.
  virtual Value option(std::string_view kind, std::string_view component,
                       std::string_view option) const = 0;
  /// Ranks along an axis of the core or a fused group: "pp", "fsdp" (dist::Grid). -1 in a degree is
  /// worked out.
  virtual int64_t ranks(std::string_view axis) const = 0;
};

/// Takes what a component's rules find wrong, before anything is made.
class TITAN_API RuleReport {
 public:
  virtual ~RuleReport();
  /// `where`: an option of the component, or a key of the core, "training.dtype"; the report stands
  /// at its value. `hint`: what to do, or empty.
  virtual void error(std::string_view where, std::string message, std::string hint = "") = 0;
};

}  // namespace titan
