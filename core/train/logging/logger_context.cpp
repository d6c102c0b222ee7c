#include "core/train/logging/logger_context.h"

namespace titan::core {
namespace {

/// 0 if COLUMNS is unset or not a valid number.
int columns_in(const Environment& environment) {
  constexpr int kMostColumns = 10000;
  try {
    return environment.integer("COLUMNS", 1, kMostColumns).value_or(0);
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace

LoggerContext logger_context(const MetricsSection& metrics, const Environment& environment,
                             bool is_terminal) {
  const bool obeys = is_terminal && environment.get("TERM").value_or("dumb") != "dumb";
  return {.is_terminal = is_terminal,
          .disable_color = metrics.disable_color_printing || environment.has("NO_COLOR") || !obeys,
          .can_redraw = obeys,
          .columns = columns_in(environment),
          .tensorboard_folder = metrics.save_tb_folder};
}

}  // namespace titan::core
