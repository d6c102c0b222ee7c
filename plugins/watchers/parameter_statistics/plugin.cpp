// Registers watcher:parameter_statistics.
#include <titan/plugin.h>

#include "parameter_statistics.h"

TITAN_PLUGIN(plugin) {
  using titan::parameter_statistics::NormsOf;
  using titan::parameter_statistics::Options;
  plugin
      .add<titan::parameter_statistics::ParameterStatistics>(
          "parameter_statistics", "Logs norms and histograms of weights and gradients.")
      .option("norms", &Options::norms,
              "Norms of weights and gradients at logged steps: of each layer or of each parameter",
              {{"none", NormsOf::none},
               {"layers", NormsOf::layers},
               {"parameters", NormsOf::parameters}})
      .fed_by("metrics.norms")
      .option("histograms", &Options::histograms,
              "Names or patterns of parameters whose values and gradients are logged as histograms")
      .fed_by("metrics.histograms")
      .option("histogram_freq", &Options::histogram_freq,
              "Steps between histograms; only at logged steps")
      .at_least(1)
      .fed_by("metrics.histogram_freq")
      .option("log_freq", &Options::log_freq, "Log at step 1 and every N steps")
      .at_least(1)
      .fed_by("metrics.log_freq");
}
