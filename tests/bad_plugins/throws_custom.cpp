// Throws a custom type without a base class.
#include <titan/plugin.h>

namespace acme {
struct Mishap {};
}  // namespace acme

TITAN_PLUGIN(plugin) {
  throw acme::Mishap{};
}
