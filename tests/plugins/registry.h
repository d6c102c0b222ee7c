// The built plugins, as the tests of models and optimizers take them: by name, through the
// registry.
#pragma once

#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::testing {

inline core::Registry& plugin_registry() {
  static const core::Catalog catalog({TITAN_PLUGIN_DIR});
  static core::Registry registry(catalog);
  return registry;
}

}  // namespace titan::testing
