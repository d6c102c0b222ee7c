#include "core/config/selection/registry_lookup.h"

#include <string>

#include <titan/error.h>

namespace titan::core {

const Component* RegistryLookup::find(std::string_view kind, std::string_view name,
                                      std::string& why) {
  why.clear();
  if (catalog_.providers(kind, name).empty()) return nullptr;
  try {
    return &registry_.component(kind, name);
  } catch (const Error& e) {
    why = e.what();
    return nullptr;
  }
}

const Flavor* RegistryLookup::flavor(std::string_view model, std::string_view name,
                                     std::string& why) {
  why.clear();
  const std::string full = std::string(model) + "/" + std::string(name);
  if (catalog_.providers("flavor", full).empty()) return nullptr;
  try {
    return &registry_.flavor(model, name);
  } catch (const Error& e) {
    why = e.what();
    return nullptr;
  }
}

}  // namespace titan::core
