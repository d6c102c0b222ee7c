// Logger `console`: one line on standard output at each logged step.
#pragma once

#include <titan/logger.h>

#include "../common/output_file.h"
#include "console_line.h"

namespace titan::loggers {

/// Coloured on a terminal unless [metrics] disable_color_printing says otherwise, plain in files
/// and pipes.
class ConsoleLogger final : public Logger {
 public:
  explicit ConsoleLogger(LoggerContext context)
      : ConsoleLogger(context, OutputFile::borrow(1, "standard output")) {}
  /// Writes somewhere else, for tests.
  ConsoleLogger(const LoggerContext& context, OutputFile output)
      : style_(context.is_terminal && !context.disable_color ? Style::colored : Style::plain),
        output_(std::move(output)) {}

  void start(const RunInfo&) override {}
  void log(int64_t step, std::span<const Scalar> scalars) override {
    output_.append(format_console_line(step, scalars, style_));
  }
  void finish(RunOutcome) noexcept override {}

 private:
  Style style_;
  OutputFile output_;
};

}  // namespace titan::loggers
