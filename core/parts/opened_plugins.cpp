#include "core/parts/opened_plugins.h"

#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <utility>

#include <titan/error.h>

#include "core/plugin/abilities.h"
#include "core/plugin/catalog.h"
#include "core/plugin/compatibility.h"
#include "core/plugin/manifest.h"
#include "core/plugin/plugin_check.h"
#include "core/plugin/registration.h"

namespace titan::core {
namespace {

constexpr const char* kUses = "uses";

Value as_value(const Manifest& manifest) {
  Value fields = Value::map();
  for (const auto& [key, text] : manifest.fields) fields[key] = text;
  fields[kUses] = Value::list();
  for (const std::string& header : manifest.uses) fields[kUses].as_list().emplace_back(header);
  return fields;
}

}  // namespace

Value OpenedPlugins::manifest(const std::filesystem::path& file) const {
  return as_value(read_manifest(file));
}

Value OpenedPlugins::own_manifest() const {
  return as_value(host_manifest());
}

std::string OpenedPlugins::mismatch(const Value& manifest) const {
  Manifest other;
  for (const auto& [key, value] : manifest.as_map()) {
    if (value.is_string()) other.fields.emplace_back(key, value.as_string());
    if (key != kUses || !value.is_list()) continue;
    for (const Value& header : value.as_list())
      if (header.is_string()) other.uses.push_back(header.as_string());
  }
  const auto found = differences(other, host_manifest());
  return is_compatible(found) ? "" : summary(found);
}

PluginFileReport OpenedPlugins::check(const std::filesystem::path& file, double seconds) {
  PluginCheck report =
      check_plugin(file, plugin_search_path({}),
                   std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000))));
  return {std::move(report.passed), std::move(report.notes), std::move(report.problem)};
}

OpenedPlugin OpenedPlugins::open(const std::filesystem::path& file) {
  static auto& opened = *new std::deque<std::unique_ptr<LoadedPlugin>>();  // never destroyed
  const std::filesystem::path absolute = std::filesystem::absolute(file).lexically_normal();
  const LoadedPlugin& plugin = *opened.emplace_back(load_plugin(absolute, read_manifest(absolute)));
  return {&plugin.registered, as_value(plugin.manifest)};
}

std::vector<std::string> OpenedPlugins::abilities(const Component& component) const {
  return abilities_of(component);
}

std::filesystem::path OpenedPlugins::own_folder() const {
  return plugin_search_path({}).back();
}

}  // namespace titan::core
