#include <stdexcept>

#include <titan/plugin.h>

TITAN_PLUGIN(plugin) {
  throw std::runtime_error("the table of constants is gone");
}
