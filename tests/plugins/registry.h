// The built plugins, as tests take their components: by name, through the registry.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include <titan/value.h>

namespace titan::core {
class Registry;
}

namespace titan::testing {

/// The environment variable TITAN_PLUGIN_DIR, else the folder that the build names: absolute, or
/// relative to the program's folder.
std::filesystem::path plugin_folder();

/// Of this process, over plugin_folder(). It serves one thread at a time; `create` below sees to
/// that among its own callers.
core::Registry& plugin_registry();

/// What Registry::create makes, for ranks that are threads: one at a time.
void* create(std::string_view kind, std::string_view name, const Value& options,
             const void* context);

template <class Interface>
std::unique_ptr<Interface> create(std::string_view name, const Value& options,
                                  const typename Interface::Context& context) {
  return std::unique_ptr<Interface>(
      static_cast<Interface*>(create(Interface::kKind, name, options, &context)));
}

}  // namespace titan::testing
