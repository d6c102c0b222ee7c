// Registers one name more than it provides, one name twice, and one of an unknown kind.
#include "constant.h"

namespace {

class Gadget {
 public:
  static constexpr const char* kKind = "gadget";
  using Interface = Gadget;
  struct Context {};
  explicit Gadget(Context) {}
};

}  // namespace

TITAN_PLUGIN(plugin) {
  add_constant(plugin, "Constant");
  add_constant(plugin, "Constant");
  add_constant(plugin, "Stowaway");
  plugin.add<Gadget>("gizmo", "Of a kind that there is not.");
}
