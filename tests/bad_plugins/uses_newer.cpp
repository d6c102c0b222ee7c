// Claims to include an optional header of a later sdk.
#include "constant.h"

TITAN_OPTIONAL_HEADER(next_year);

TITAN_PLUGIN(plugin) {
  add_constant(plugin, "Constant");
}
