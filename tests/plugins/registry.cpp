#include "tests/plugins/registry.h"

#include <mutex>

#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::testing {

core::Registry& plugin_registry() {
  static const core::Catalog catalog({TITAN_PLUGIN_DIR});
  static core::Registry registry(catalog);
  return registry;
}

void* create(std::string_view kind, std::string_view name, const Value& options,
             const void* context) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return plugin_registry().create(kind, name, options, context);
}

}  // namespace titan::testing
