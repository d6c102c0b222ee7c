// Registers the logger `jsonl`.
#include <titan/plugin.h>

#include "jsonl_logger.h"

TITAN_PLUGIN(plugin) {
  plugin.add<titan::loggers::JsonlLogger>(
      "jsonl", "Every scalar in full precision, one JSON object per line, in metrics.jsonl.");
}
