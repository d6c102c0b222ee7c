// Registers the logger `console`.
#include <titan/plugin.h>

#include "console_logger.h"

TITAN_PLUGIN(plugin) {
  plugin.add<titan::loggers::ConsoleLogger>(
      "console", "One line on standard output at each logged step, coloured on a terminal.");
}
