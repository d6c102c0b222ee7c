// The built plugins, as tests take their components: by name, through the registry.
#pragma once

#include <memory>
#include <string_view>

#include <titan/value.h>

namespace titan::core {
class Registry;
}

namespace titan::testing {

/// Of this process, over TITAN_PLUGIN_DIR. It serves one thread at a time; `create` below sees to
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
