#include "core/plugin/abilities.h"

#include <algorithm>

#include <titan/hf_exchange.h>

namespace titan::core {
namespace {

struct OptionalInterface {
  const char* name;
  bool (Component::*is_of)() const;
};
constexpr OptionalInterface kOptionalInterfaces[] = {{"HfExchange", &Component::is<HfExchange>}};

}  // namespace

std::vector<std::string> abilities_of(const Component& component) {
  std::vector<std::string> names = component.abilities;
  for (const OptionalInterface& optional : kOptionalInterfaces)
    if (std::find(names.begin(), names.end(), optional.name) == names.end() &&
        (component.*optional.is_of)())
      names.emplace_back(optional.name);
  return names;
}

}  // namespace titan::core
