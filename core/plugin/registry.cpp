#include "core/plugin/registry.h"

#include <algorithm>
#include <map>
#include <utility>

#include <titan/suggest.h>

#include "core/plugin/built_in.h"
#include "core/plugin/flavor_preset.h"
#include "core/plugin/registration.h"

namespace titan::core {
namespace {

std::string described(std::string_view kind, std::string_view name) {
  return std::string(kind) + " '" + std::string(name) + "'";
}

std::string place_of(const CatalogEntry& entry) {
  return entry.file.empty() ? "built in" : entry.file.string();
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

[[noreturn]] void refuse_twice(const std::string& what,
                               const std::vector<const CatalogEntry*>& providers) {
  std::string report =
      titan::detail::concat(what, " is provided by ", providers.size(), " plugins:");
  for (const CatalogEntry* entry : providers)
    report += "\n    " + entry->manifest.plugin + " " + entry->manifest.version + " from " +
              place_of(*entry);
  throw Error(ErrorKind::plugin, report +
                                     "\n  remove all but one, or leave the other folders out of "
                                     "[plugins] paths and TITAN_PLUGIN_PATH");
}

}  // namespace

struct Registry::Impl {
  const Catalog& catalog;
  std::map<const CatalogEntry*, std::unique_ptr<LoadedPlugin>> loaded;
  std::map<const Component*, Origin> origins;
  std::vector<const Flavor*> checked_flavors;
  std::vector<std::string> unlisted;

  /// The only plugin that provides the name, opened.
  const LoadedPlugin& provider(std::string_view kind, std::string_view name);
  const LoadedPlugin& load(const CatalogEntry& entry);
  [[noreturn]] void refuse_unknown(std::string_view kind, std::string_view name) const;
  [[noreturn]] void refuse_unknown_flavor(const std::string& model,
                                          const std::string& flavor) const;
};

void Registry::Impl::refuse_unknown(std::string_view kind, std::string_view name) const {
  const auto& kinds = plugin_kinds();
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    const std::string hint = did_you_mean(kind, kinds);
    fail(ErrorKind::plugin, "there is no plugin kind '", kind, "'", hint.empty() ? "" : "; ", hint,
         "\n  kinds: ", list_of(kinds));
  }
  const std::vector<std::string> names = catalog.names(kind);
  const std::string hint = did_you_mean(name, names);
  fail(ErrorKind::plugin, "there is no ", described(kind, name), hint.empty() ? "" : "; ", hint,
       names.empty() ? "" : "\n  available: ", list_of(names), "\n  ", catalog.search_trail());
}

void Registry::Impl::refuse_unknown_flavor(const std::string& model,
                                           const std::string& flavor) const {
  std::vector<std::string> flavors;
  const std::vector<std::string> models = catalog.names("model");
  for (const std::string& name : catalog.names("flavor"))
    if (FlavorName split = split_flavor(name, models); split.model == model)
      flavors.push_back(std::move(split.flavor));
  const std::string hint = did_you_mean(flavor, flavors);
  fail(ErrorKind::plugin, "model '", model, "' has no flavor '", flavor, "'",
       hint.empty() ? "" : "; ", hint, flavors.empty() ? "" : "\n  available: ", list_of(flavors),
       "\n  ", catalog.search_trail());
}

const LoadedPlugin& Registry::Impl::provider(std::string_view kind, std::string_view name) {
  const auto providers = catalog.providers(kind, name);
  if (providers.empty()) refuse_unknown(kind, name);
  if (providers.size() > 1) refuse_twice(described(kind, name), providers);
  return load(*providers.front());
}

const LoadedPlugin& Registry::Impl::load(const CatalogEntry& entry) {
  if (const auto found = loaded.find(&entry); found != loaded.end()) return *found->second;
  std::unique_ptr<LoadedPlugin> plugin;
  TITAN_CHECK(entry.build_command.empty(), plugin, "plugin '", entry.manifest.plugin,
              "' is not built yet\n  build it: ", entry.build_command);
  if (!entry.file.empty()) {
    if (!require_locked(catalog.locked(), entry.file, entry.manifest))
      unlisted.push_back(entry.manifest.plugin + " " + entry.manifest.version);
    plugin = load_plugin(entry.file, entry.manifest);
  } else {
    const auto& all = built_in_plugins();
    const auto found = std::find_if(all.begin(), all.end(), [&](const BuiltInPlugin& one) {
      return parse_manifest(one.manifest, "a built-in plugin").plugin == entry.manifest.plugin;
    });
    TITAN_ASSERT(found != all.end(), "built-in plugin '", entry.manifest.plugin, "' is gone");
    plugin = load_plugin(*found, entry.manifest);
  }
  for (const Component& component : plugin->registered.components())
    origins[&component] = {plugin->manifest.plugin, plugin->manifest.version, plugin->file};
  return *(loaded[&entry] = std::move(plugin));
}

Registry::Registry(const Catalog& catalog) : impl_(new Impl{catalog, {}, {}, {}}) {}
Registry::~Registry() = default;

const Component& Registry::component(std::string_view kind, std::string_view name) {
  const auto& components = impl_->provider(kind, name).registered.components();
  const auto found = std::find_if(components.begin(), components.end(), [&](const Component& one) {
    return one.kind == kind && one.name == name;
  });
  TITAN_ASSERT(found != components.end(), described(kind, name),
               " was provided and checked, but is not registered");
  return *found;
}

const Flavor& Registry::flavor(std::string_view model, std::string_view name) {
  const Component& owner = component("model", model);
  const std::string full_name = std::string(model) + "/" + std::string(name);
  if (impl_->catalog.providers("flavor", full_name).empty())
    impl_->refuse_unknown_flavor(std::string(model), std::string(name));
  const LoadedPlugin& plugin = impl_->provider("flavor", full_name);
  const auto& flavors = plugin.registered.flavors();
  const auto found = std::find_if(flavors.begin(), flavors.end(), [&](const Flavor& one) {
    return one.model == model && one.name == name;
  });
  TITAN_ASSERT(found != flavors.end(), "flavor ", full_name,
               " was provided and checked, but is not registered");

  auto& checked = impl_->checked_flavors;
  if (std::find(checked.begin(), checked.end(), &*found) != checked.end()) return *found;
  const auto problems = preset_problems(*found, owner.schema);
  if (!problems.empty()) {
    std::string report = "cannot use flavor '" + std::string(name) + "' of model '" +
                         std::string(model) + "' from plugin '" + plugin.manifest.plugin + "' (" +
                         plugin.file + ")\n  its preset does not fit the model:";
    for (const std::string& problem : problems) report += "\n    " + problem;
    throw Error(ErrorKind::plugin, report);
  }
  checked.push_back(&*found);
  return *found;
}

const Origin& Registry::origin(const Component& component) const {
  const auto found = impl_->origins.find(&component);
  TITAN_ASSERT(found != impl_->origins.end(), "component '", component.name,
               "' is not from this registry");
  return found->second;
}

const std::vector<std::string>& Registry::unlisted_plugins() const {
  return impl_->unlisted;
}

void* Registry::create(std::string_view kind, std::string_view name, const Value& options,
                       const void* context) {
  const Component& wanted = component(kind, name);
  const Origin& from = origin(wanted);
  const std::string context_line = "while " + described(kind, name) + " was made (plugin " +
                                   from.plugin + " " + from.version + ", " + from.file + ")";
  void* made = nullptr;
  try {
    const std::shared_ptr<void> checked_options = wanted.schema.make(options);
    made = wanted.make(checked_options.get(), context);
  } catch (Error& e) {
    e.with_context(context_line);
    throw;
  } catch (...) {
    throw Error(ErrorKind::plugin, describe_current_exception()).with_context(context_line);
  }
  if (!made)
    throw Error(ErrorKind::plugin, "the factory returned no object").with_context(context_line);
  return made;
}

}  // namespace titan::core
