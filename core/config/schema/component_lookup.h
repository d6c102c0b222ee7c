// What the configuration needs to know about components: their option schemas and names. An
// interface, so that the configuration can be checked without plugin files; registry_lookup.h
// answers it from the plugin registry.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <titan/plugin.h>

namespace titan::core {

class ComponentLookup {
 public:
  virtual ~ComponentLookup() = default;

  /// The component, which lives as long as the lookup; null when there is none. `why` is then empty
  /// when nothing provides that name, else it says what is wrong with the plugin that does.
  virtual const Component* find(std::string_view kind, std::string_view name, std::string& why) = 0;
  /// The preset `name` of `model`; null as above.
  virtual const Flavor* flavor(std::string_view model, std::string_view name, std::string& why) = 0;
  /// All names of one kind, sorted. Kind "flavor" gives "<model>/<flavor>".
  virtual std::vector<std::string> names(std::string_view kind) = 0;
  /// Where was searched, for the report of a name that nothing provides; lines without a final line
  /// end, or empty.
  virtual std::string search_trail() = 0;
};

/// Every component of a kind that can be used; opens every plugin of the kind.
inline std::vector<const Component*> all_of(ComponentLookup& lookup, std::string_view kind) {
  std::vector<const Component*> found;
  std::string ignored;
  for (const std::string& name : lookup.names(kind))
    if (const Component* component = lookup.find(kind, name, ignored)) found.push_back(component);
  return found;
}

}  // namespace titan::core
