// The built plugins for tests: creates components by name, through the registry.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include <titan/value.h>

namespace titan::core {
class Registry;
}

namespace titan::testing {

/// The environment variable TITAN_PLUGIN_DIR, else the folder given by the build: absolute, or
/// relative to the program's folder.
std::filesystem::path plugin_folder();

/// The registry of this process over plugin_folder(). Not thread-safe; `create` below serialises
/// its own calls.
core::Registry& plugin_registry();

/// Returns Registry::create's component. For ranks on threads: runs one call at a time.
void* create(std::string_view kind, std::string_view name, const Value& options,
             const void* context);

template <class Interface>
std::unique_ptr<Interface> create(std::string_view name, const Value& options,
                                  const typename Interface::Context& context) {
  return std::unique_ptr<Interface>(
      static_cast<Interface*>(create(Interface::kKind, name, options, &context)));
}

}  // namespace titan::testing
