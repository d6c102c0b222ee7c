// Registers watcher:fingerprints.
#include <titan/plugin.h>

#include "fingerprints.h"

TITAN_PLUGIN(plugin) {
  plugin.add<titan::fingerprints::FingerprintWatcher>(
      "fingerprints",
      "Writes hashes of the initial weights and of each step's tokens, to compare layouts.");
}
