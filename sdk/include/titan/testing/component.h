// Makes the components of a plugin in its own unit test, with options as a configuration gives
// them. titan_test_plugin() links the plugin's objects into the test. No torch.
//
//   const auto schedule = titan::testing::make<titan::LrScheduler>("acme/linear", {{"floor",
//   0.5}});
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include <titan/error.h>
#include <titan/export.h>
#include <titan/plugin.h>
#include <titan/value.h>

TITAN_OPTIONAL_HEADER(testing_component);

/// Defined by TITAN_PLUGIN in the plugin under test.
extern "C" const titan::PluginEntry* titan_plugin_entry_v1();

namespace titan::testing {

using OptionValues = std::initializer_list<Value::Member>;

/// The plugin under test, registered once.
inline const Plugin& plugin() {
  static const Plugin kPlugin = [] {
    Plugin plugin;
    titan_plugin_entry_v1()->register_plugin(&plugin);
    return plugin;
  }();
  return kPlugin;
}

/// The component `name` of one of `kinds`. Throws a plugin Error if the plugin registers none.
inline const Component& component(std::initializer_list<std::string_view> kinds,
                                  std::string_view name) {
  for (const Component& component : plugin().components())
    for (const std::string_view kind : kinds)
      if (component.kind == kind && component.name == name) return component;
  fail(ErrorKind::plugin, "the plugin registers no ", *kinds.begin(), " '", name, "'");
}

/// A component with `options`; all others have their defaults. Throws a config Error for an unknown
/// option and for a value out of its limits, as Titan does before a run. `context` and everything
/// it refers to must outlive the component.
template <class Interface>
std::unique_ptr<Interface> make(std::string_view name, OptionValues options = {},
                                const typename Interface::Context& context = {}) {
  const Component& found = component({Interface::kKind}, name);
  const std::shared_ptr<void> checked = found.schema.make(Value::map(options));
  return std::unique_ptr<Interface>(static_cast<Interface*>(found.make(checked.get(), &context)));
}

}  // namespace titan::testing
