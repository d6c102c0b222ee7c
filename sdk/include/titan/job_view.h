// The core's keys and the layout, as plugins see them to derive defaults of their options and to
// check them. No torch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <titan/export.h>
#include <titan/value.h>

namespace titan {

/// A job whose core keys are resolved. Valid only during the call that receives it.
class TITAN_API JobView {
 public:
  virtual ~JobView();
  /// The configured or default value of a key of the core, "training.dtype"; null if unset. Throws
  /// a plugin Error for a key that the core does not have.
  virtual Value core(std::string_view key) const = 0;
  /// [in checks] The configured or default value of an option of another component, "converter",
  /// "lora", "rank". Null if the job does not use the component, or it has no such option, or the
  /// option is unset. Components: the model, optimizer, lr_scheduler, tokenizer, device and
  /// transforms. Throws a plugin Error while options are being resolved.
  virtual Value option(std::string_view kind, std::string_view component,
                       std::string_view option) const = 0;
  /// Ranks along an axis of the core or a fused group: "pp", "fsdp" (dist::Grid). Degrees of -1 are
  /// resolved.
  virtual int64_t ranks(std::string_view axis) const = 0;
};

/// Collects the errors that a component's rules find, before anything is made.
class TITAN_API RuleReport {
 public:
  virtual ~RuleReport();
  /// `where`: an option of the component, or a key of the core, "training.dtype"; the report points
  /// to its value. `hint`: what to do, or empty.
  virtual void error(std::string_view where, std::string message, std::string hint = "") = 0;
};

}  // namespace titan
