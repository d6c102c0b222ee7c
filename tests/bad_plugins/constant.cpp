// A sound plugin.
#include "constant.h"

TITAN_PLUGIN(plugin) {
  add_constant(plugin, "Constant");
}
