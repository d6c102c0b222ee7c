// Nothing wrong here, but an optional header of the sdk is included.
#include <titan/hf_config.h>

#include "constant.h"

TITAN_PLUGIN(plugin) {
  add_constant(plugin, titan::hf_rope_members().empty() ? "" : "Constant");
}
