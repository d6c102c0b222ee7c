// Nothing wrong here.
#include "constant.h"

TITAN_PLUGIN(plugin) {
  add_constant(plugin, "Constant");
}
