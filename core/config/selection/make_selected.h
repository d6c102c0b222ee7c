// Makes the component that the configuration selects, with its configured options. Used by the
// assembly and by commands.
#pragma once

#include <memory>

#include "core/config/schema/job_config.h"
#include "core/config/selection/component_error.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Throws as Registry::create. An invalid option becomes a ComponentError; any other error names
/// the place where the component was chosen.
template <class Interface>
std::unique_ptr<Interface> make_selected(Registry& registry, const Selection& chosen,
                                         const typename Interface::Context& context) {
  try {
    return on_behalf_of(chosen, [&] {
      return std::unique_ptr<Interface>(static_cast<Interface*>(
          registry.create(chosen.kind, chosen.name, chosen.options, &context)));
    });
  } catch (Error& error) {
    if (error.kind() != ErrorKind::config && chosen.where)
      error.with_context("which was chosen " +
                         (chosen.where.source->is_file
                              ? "at " + chosen.where.to_string()
                              : "by '" + chosen.where.source->lines.front() + "'"));
    throw;
  }
}

}  // namespace titan::core
