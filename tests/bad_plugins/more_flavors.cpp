// Flavors for another plugin's model: one that fits it and one that does not.
#include <titan/plugin.h>

TITAN_PLUGIN(plugin) {
  plugin.add_flavor("toy", "large", "The largest.", {{"dim", 4096}});
  plugin.add_flavor("toy", "broken", "Fits nothing.", {{"dimm", 8}, {"layers", 0}});
}
