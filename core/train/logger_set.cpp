#include "core/train/logger_set.h"

#include <titan/error.h>
#include <titan/log.h>

namespace titan::core {

template <class Action>
void LoggerSet::for_each(const Action& action) {
  std::erase_if(loggers_, [&](Entry& entry) {
    std::string problem;
    try {
      action(*entry.logger);
      return false;
    } catch (const std::exception& e) {
      problem = e.what();
    } catch (...) {
      problem = "an exception of unknown type";
    }
    log::warn("logger '" + entry.name +
              "' failed and is off from here on; training goes on: " + problem);
    entry.logger->finish(RunOutcome::failed);
    return true;
  });
}

void LoggerSet::add(std::string name, std::shared_ptr<Logger> logger) {
  loggers_.push_back({std::move(name), std::move(logger)});
}

void LoggerSet::start(const RunInfo& run) {
  for_each([&](Logger& logger) { logger.start(run); });
}

void LoggerSet::log(int64_t step, std::span<const Scalar> scalars) {
  for_each([&](Logger& logger) { logger.log(step, scalars); });
}

void LoggerSet::finish(RunOutcome outcome) noexcept {
  for (Entry& entry : loggers_) entry.logger->finish(outcome);
  loggers_.clear();
}

}  // namespace titan::core
