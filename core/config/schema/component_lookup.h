// The interface through which the configuration finds components: their option schemas and names.
// Tests implement it without plugin files; registry_lookup.h implements it with the plugin
// registry.
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
  /// when no plugin provides that name, else it is the error of the plugin that does.
  virtual const Component* find(std::string_view kind, std::string_view name, std::string& why) = 0;
  /// The preset `name` of `model`; null as above.
  virtual const Flavor* flavor(std::string_view model, std::string_view name, std::string& why) = 0;
  /// All names of one kind, sorted. Kind "flavor" gives "<model>/<flavor>".
  virtual std::vector<std::string> names(std::string_view kind) = 0;
  /// The searched folders, for the report of a name that no plugin provides: lines without a final
  /// newline, or empty.
  virtual std::string search_trail() = 0;
};

/// Every usable component of a kind; opens every plugin of the kind.
inline std::vector<const Component*> all_of(ComponentLookup& lookup, std::string_view kind) {
  std::vector<const Component*> found;
  std::string ignored;
  for (const std::string& name : lookup.names(kind))
    if (const Component* component = lookup.find(kind, name, ignored)) found.push_back(component);
  return found;
}

}  // namespace titan::core
