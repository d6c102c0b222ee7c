// Finds components through the plugin registry. Used by the commands; tests of the configuration
// have their own lookup.
#pragma once

#include "core/config/schema/component_lookup.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Opens only the plugins of the names that are looked up. Both arguments outlive the lookup.
class RegistryLookup : public ComponentLookup {
 public:
  RegistryLookup(const Catalog& catalog, Registry& registry)
      : catalog_(catalog), registry_(registry) {}

  const Component* find(std::string_view kind, std::string_view name, std::string& why) override;
  const Flavor* flavor(std::string_view model, std::string_view name, std::string& why) override;
  std::vector<std::string> names(std::string_view kind) override { return catalog_.names(kind); }
  std::string search_trail() override { return catalog_.search_trail(); }

 private:
  const Catalog& catalog_;
  Registry& registry_;
};

}  // namespace titan::core
