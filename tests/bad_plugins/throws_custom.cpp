// A type of its own that derives from nothing.
#include <titan/plugin.h>

namespace acme {
struct Mishap {};
}  // namespace acme

TITAN_PLUGIN(plugin) {
  throw acme::Mishap{};
}
