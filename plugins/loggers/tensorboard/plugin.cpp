// Registers the logger `tensorboard`.
#include <titan/plugin.h>

#include "tensorboard_logger.h"

TITAN_PLUGIN(plugin) {
  plugin.add<titan::loggers::TensorboardLogger>(
      "tensorboard", "Scalars and the configuration as event files that TensorBoard reads.");
}
