// A flavor of a model that no plugin has.
#include <titan/plugin.h>

TITAN_PLUGIN(plugin) {
  plugin.add_flavor("nowhere", "tiny", "Of a model that is not there.", {{"dim", 8}});
}
