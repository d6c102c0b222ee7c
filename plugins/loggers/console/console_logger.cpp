// See console_logger.h.
#include "console_logger.h"

#include <unistd.h>

#include <string>

namespace titan::loggers {
namespace {

constexpr double kBetweenDraws = 0.1;  // seconds
constexpr int kUsualColumns = 80;

}  // namespace

void ConsoleLogger::start(const RunInfo& run) {
  progress_.step = run.resumed_step;
  progress_.num_steps = run.num_steps;
  tokens_per_step_ = run.tokens_per_step;
  if (context_.can_redraw) status_.emplace(STDOUT_FILENO);
}

void ConsoleLogger::log(int64_t step, std::span<const Scalar> scalars) {
  for (const Scalar& scalar : scalars) {
    if (scalar.tag == "loss_metrics/global_avg_loss" || scalar.tag == "loss_metrics/group_avg_loss")
      progress_.loss = scalar.value;
    if (scalar.tag == "memory/max_active(GiB)") progress_.memory_gib = scalar.value;
  }
  const std::string lines = format_console_line(step, scalars, style_);
  if (status_)
    status_->write_above(lines);
  else
    output_.append(lines);
}

void ConsoleLogger::step_done(const StepProgress& progress) {
  progress_.step = progress.step;
  rate_.add(progress.step, progress.time);
  draw_progress(progress.time);
}

void ConsoleLogger::draw_progress(double now) {
  if (!status_ || now - last_drawn_ < kBetweenDraws) return;
  last_drawn_ = now;
  progress_.seconds_left = progress_.tokens_per_second = std::nullopt;
  if (const auto rate = rate_.steps_per_second()) {
    if (progress_.num_steps > 0)
      progress_.seconds_left = static_cast<double>(progress_.num_steps - progress_.step) / *rate;
    if (tokens_per_step_ > 0)
      progress_.tokens_per_second = static_cast<double>(tokens_per_step_) * *rate;
  }
  int columns = status_->columns();
  if (columns <= 0) columns = context_.columns > 0 ? context_.columns : kUsualColumns;
  // the last column stays empty: a character there makes some terminals start a new line
  status_->draw(format_progress_line(progress_, static_cast<size_t>(columns - 1), style_));
}

void ConsoleLogger::finish(RunOutcome) noexcept {
  status_.reset();
}

}  // namespace titan::loggers
