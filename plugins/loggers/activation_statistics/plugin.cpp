// Registers the logger `activation_statistics`.
#include <titan/plugin.h>

#include "activation_statistics.h"

TITAN_PLUGIN(plugin) {
  using Options = titan::loggers::ActivationStatisticsOptions;
  plugin
      .add<titan::loggers::ActivationStatistics>(
          "activation_statistics",
          "Root mean square, maximum, zeros and what is not finite of modules' outputs.")
      .option("modules", &Options::modules, "Patterns of the modules' paths")
      .option("every", &Options::every,
              "Steps from one look to the next; the first step is looked at")
      .at_least(1);
}
