// All loggers of a run. One that fails is reported once and dropped; training goes on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <titan/logger.h>

namespace titan::core {

class LoggerSet {
 public:
  /// Shared with whoever shows it tensors, also after it was dropped here.
  void add(std::string name, std::shared_ptr<Logger> logger);

  void start(const RunInfo& run);
  void log(int64_t step, std::span<const Scalar> scalars);
  void finish(RunOutcome outcome) noexcept;

 private:
  struct Entry {
    std::string name;
    std::shared_ptr<Logger> logger;
  };
  /// Calls `action` for each; those that throw are dropped with one warning.
  template <class Action>
  void for_each(const Action& action);

  std::vector<Entry> loggers_;
};

}  // namespace titan::core
