// Makes the component that the configuration selects, with the options it gives.
#pragma once

#include <memory>

#include "core/config/job_config.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Throws as Registry::create.
template <class Interface>
std::unique_ptr<Interface> make_selected(Registry& registry, const Selection& chosen,
                                         const typename Interface::Context& context) {
  return std::unique_ptr<Interface>(
      static_cast<Interface*>(registry.create(chosen.kind, chosen.name, chosen.options, &context)));
}

}  // namespace titan::core
