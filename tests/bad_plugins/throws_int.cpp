#include <titan/plugin.h>

TITAN_PLUGIN(plugin) {
  throw 42;
}
