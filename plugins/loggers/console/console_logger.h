// Logger `console`: one line on standard output at each logged step, and on a terminal a progress
// line at the bottom.
#pragma once

#include <optional>

#include <titan/logger.h>
#include <titan/status_line.h>

#include "../common/output_file.h"
#include "console_line.h"
#include "progress_line.h"

namespace titan::loggers {

/// Coloured on a terminal unless LoggerContext disables it, plain in files and pipes.
class ConsoleLogger final : public Logger {
 public:
  explicit ConsoleLogger(LoggerContext context)
      : ConsoleLogger(context, OutputFile::borrow(1, "standard output")) {}
  /// Writes its lines to `output`, for tests.
  ConsoleLogger(const LoggerContext& context, OutputFile output)
      : context_(context),
        style_(context.is_terminal && !context.disable_color ? Style::colored : Style::plain),
        output_(std::move(output)) {}

  void start(const RunInfo& run) override;
  void log(int64_t step, std::span<const Scalar> scalars) override;
  bool follows_steps() const override { return context_.can_redraw; }
  void step_done(const StepProgress& progress) override;
  void finish(RunOutcome outcome) noexcept override;

 private:
  /// Skipped when it was drawn a moment ago.
  void draw_progress(double now);

  LoggerContext context_;
  Style style_;
  OutputFile output_;
  std::optional<StatusLine> status_;  // on a terminal that can redraw
  Progress progress_;
  StepRate rate_;
  int64_t tokens_per_step_ = 0;
  double last_drawn_ = 0;  // by the clock of StepProgress
};

}  // namespace titan::loggers
