// Makes the component that the configuration selects, with the options it gives.
#pragma once

#include <memory>

#include "core/config/component_error.h"
#include "core/config/job_config.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Throws as Registry::create; what the component finds wrong with its options is a ComponentError.
template <class Interface>
std::unique_ptr<Interface> make_selected(Registry& registry, const Selection& chosen,
                                         const typename Interface::Context& context) {
  return on_behalf_of(chosen, [&] {
    return std::unique_ptr<Interface>(static_cast<Interface*>(
        registry.create(chosen.kind, chosen.name, chosen.options, &context)));
  });
}

}  // namespace titan::core
