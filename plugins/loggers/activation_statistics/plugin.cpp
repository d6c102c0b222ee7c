// Registers the logger `activation_statistics`.
#include <titan/plugin.h>

#include "activation_statistics.h"

TITAN_PLUGIN(plugin) {
  using Options = titan::loggers::ActivationStatisticsOptions;
  plugin
      .add<titan::loggers::ActivationStatistics>(
          "activation_statistics",
          "Root mean square, maximum, zeros and non-finite values of modules' outputs.")
      .option("modules", &Options::modules, "Patterns of module paths")
      .option("every", &Options::every, "Log at step 1 and every N steps")
      .at_least(1);
}
