#include "core/train/logging/logger_set.h"

#include <utility>

#include <titan/program/clock.h>

namespace titan::core {
namespace {

/// Scalars that own their tags.
class KeptScalars {
 public:
  explicit KeptScalars(std::span<const Scalar> scalars) : scalars_(scalars.begin(), scalars.end()) {
    size_t size = 0;
    for (const Scalar& scalar : scalars) size += scalar.tag.size();
    tags_.reserve(size);  // so that views into it stay valid
    for (Scalar& scalar : scalars_) {
      const size_t begin = tags_.size();
      tags_ += scalar.tag;
      scalar.tag = std::string_view(tags_).substr(begin);
    }
  }
  KeptScalars(const KeptScalars&) = delete;
  std::span<const Scalar> scalars() const { return scalars_; }

 private:
  std::string tags_;
  std::vector<Scalar> scalars_;
};

/// Histograms that own their tags.
class KeptHistograms {
 public:
  explicit KeptHistograms(std::span<const Histogram> histograms)
      : histograms_(histograms.begin(), histograms.end()) {
    tags_.reserve(histograms_.size());
    for (Histogram& histogram : histograms_) histogram.tag = tags_.emplace_back(histogram.tag);
  }
  KeptHistograms(const KeptHistograms&) = delete;
  std::span<const Histogram> histograms() const { return histograms_; }

 private:
  std::vector<std::string> tags_;
  std::vector<Histogram> histograms_;
};

}  // namespace

LoggerSet::~LoggerSet() {
  finish(RunOutcome::failed);
}

void LoggerSet::add(std::string name, std::shared_ptr<Logger> logger) {
  const bool follows = logger->follows_steps();
  LoggerLimits limits = limits_;
  if (limits.finish_wait == 0) limits.finish_wait = logger->finish_seconds();
  loggers_.push_back(std::make_unique<LoggerThread>(std::move(name), std::move(logger), limits));
  if (follows) followers_.push_back(loggers_.back().get());
}

void LoggerSet::start(const RunInfo& run) {
  const auto info = std::make_shared<const RunInfo>(run);
  for (const auto& logger : loggers_) logger->add([info](Logger& called) { called.start(*info); });
}

void LoggerSet::log(int64_t step, std::span<const Scalar> scalars) {
  if (loggers_.empty()) return;
  const double time = wall_seconds();
  const auto kept = std::make_shared<const KeptScalars>(scalars);
  for (const auto& logger : loggers_)
    logger->add([step, kept, time](Logger& called) {
      called.set_log_time(time);
      called.log(step, kept->scalars());
    });
}

void LoggerSet::log_histograms(int64_t step, std::span<const Histogram> histograms) {
  if (loggers_.empty()) return;
  const double time = wall_seconds();
  const auto kept = std::make_shared<const KeptHistograms>(histograms);
  for (const auto& logger : loggers_)
    logger->add([step, kept, time](Logger& called) {
      called.set_log_time(time);
      called.log_histograms(step, kept->histograms());
    });
}

void LoggerSet::step_done(const StepProgress& progress) {
  for (LoggerThread* follower : followers_) follower->step_done(progress);
}

void LoggerSet::flush() {
  for (const auto& logger : loggers_) logger->flush();
}

void LoggerSet::flush_within(LoggerThread::Clock::duration limit) {
  const auto deadline = LoggerThread::Clock::now() + limit;
  for (const auto& logger : loggers_) logger->wake();
  for (const auto& logger : loggers_) logger->flush_until(deadline);
}

void LoggerSet::finish(RunOutcome outcome) noexcept {
  const auto asked = LoggerThread::Clock::now();
  for (const auto& logger : loggers_) logger->finish(outcome);
  for (const auto& logger : loggers_) logger->wait_for_end(asked);
  followers_.clear();
  loggers_.clear();
}

}  // namespace titan::core
