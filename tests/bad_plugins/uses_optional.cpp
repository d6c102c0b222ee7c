// A sound plugin that includes an optional header of the sdk.
#include <titan/hf_config.h>

#include "constant.h"

TITAN_PLUGIN(plugin) {
  add_constant(plugin, titan::hf_rope_members().empty() ? "" : "Constant");
}
