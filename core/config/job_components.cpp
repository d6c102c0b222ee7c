#include "core/config/job_components.h"

#include <algorithm>
#include <string>

#include "core/config/selection/registry_lookup.h"

namespace titan::core {
namespace {

/// Records the components that are looked up.
class NotingLookup final : public RegistryLookup {
 public:
  NotingLookup(const Catalog& catalog, Registry& registry)
      : RegistryLookup(catalog, registry), catalog_(catalog) {}

  const Component* find(std::string_view kind, std::string_view name, std::string& why) override {
    note(kind, name);
    const Component* component = RegistryLookup::find(kind, name, why);
    if (kind == "model" && !component) {
      const std::string prefix = std::string(name) + "/";
      for (const std::string& flavor : catalog_.names("flavor"))
        if (flavor.starts_with(prefix)) note("flavor", flavor);
    }
    return component;
  }

  const Flavor* flavor(std::string_view model, std::string_view name, std::string& why) override {
    note("flavor", std::string(model) + "/" + std::string(name));
    return RegistryLookup::flavor(model, name, why);
  }

  std::vector<UsedComponent> used;

 private:
  void note(std::string_view kind, std::string_view name) {
    for (const CatalogEntry* entry : catalog_.providers(kind, name)) {
      const auto is_known = [&](const UsedComponent& one) {
        return one.kind == kind && one.name == name && one.entry == entry;
      };
      if (std::none_of(used.begin(), used.end(), is_known))
        used.push_back({std::string(kind), std::string(name), entry});
    }
  }

  const Catalog& catalog_;
};

}  // namespace

std::vector<UsedComponent> components_of_job(const JobSources& sources, const Catalog& catalog,
                                             Registry& registry, int world_size) {
  NotingLookup lookup(catalog, registry);
  Diagnostics ignored;
  try_resolve(sources, lookup, {.world_size = world_size}, ignored);
  return std::move(lookup.used);
}

}  // namespace titan::core
