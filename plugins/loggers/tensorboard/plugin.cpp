// Registers the logger `tensorboard`.
#include <titan/plugin.h>

#include "tensorboard_logger.h"

TITAN_PLUGIN(plugin) {
  plugin.add<titan::loggers::TensorboardLogger>(
      "tensorboard",
      "Scalars, histograms, the configuration and HParams as event files that TensorBoard reads.");
}
