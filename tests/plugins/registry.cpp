#include "tests/plugins/registry.h"

#include <cstdlib>
#include <mutex>

#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::testing {

std::filesystem::path plugin_folder() {
  const char* named = std::getenv("TITAN_PLUGIN_DIR");
  if (named && *named) return named;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / TITAN_PLUGIN_DIR;
}

core::Registry& plugin_registry() {
  static const core::Catalog catalog({plugin_folder()});
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
