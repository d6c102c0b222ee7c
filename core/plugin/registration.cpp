#include "core/plugin/registration.h"

#include <cxxabi.h>

#include <algorithm>
#include <set>
#include <typeinfo>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/shown_text.h>
#include <titan/suggest.h>

#include "core/plugin/kinds.h"

namespace titan::core {
namespace {

std::string as_declared(const Provided& provided) {
  return provided.kind + ":" + provided.name;
}

std::vector<Provided> all_registered(const titan::Plugin& plugin) {
  std::vector<Provided> all;
  for (const Component& component : plugin.components())
    all.push_back({component.kind, component.name});
  for (const Flavor& flavor : plugin.flavors())
    all.push_back({"flavor", flavor.model + "/" + flavor.name});
  return all;
}

bool contains(const std::vector<Provided>& all, const Provided& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// Differences between the manifest and what was registered, in both directions.
void compare_with_manifest(const Manifest& manifest, const titan::Plugin& plugin,
                           std::vector<std::string>& problems) {
  const std::vector<Provided> registered = all_registered(plugin);
  for (const Provided& declared : manifest.provides)
    if (!contains(registered, declared))
      problems.push_back("it provides " + as_declared(declared) + ", but does not register it");
  std::set<std::string> seen;
  for (const Provided& made : registered) {
    const std::string name = as_declared(made);
    if (!seen.insert(name).second)
      problems.push_back("it registers " + name + " twice");
    else if (!contains(manifest.provides, made))
      problems.push_back("it registers " + name + ", but does not provide it");
    if (!find_kind(made.kind))
      problems.push_back("it registers " + name + ", but there is no kind '" + made.kind + "'");
  }
}

/// `titan --help` shows a command's summary without opening its plugin, so the manifest holds a
/// copy.
void compare_summaries(const Manifest& manifest, const titan::Plugin& plugin,
                       std::vector<std::string>& problems) {
  for (const Component& component : plugin.components())
    if (component.kind == "command" && manifest.summary(component.name) != component.help)
      problems.push_back("SUMMARIES says of command '" + component.name +
                         "': " + in_quotes(manifest.summary(component.name)) +
                         ", TITAN_PLUGIN says " + in_quotes(component.help));
}

void check_defaults(const Schema& schema, const std::string& path, const std::string& owner,
                    std::vector<std::string>& problems) {
  for (const Option& option : schema.options) {
    const std::string name = path + option.name;
    if (const auto wrong = option.problem(option.default_value))
      problems.push_back("the default of option '" + name + "' of " + owner + " " + *wrong);
    if (option.table) check_defaults(*option.table, name + ".", owner, problems);
  }
}

void run_registration(const PluginEntry& entry, titan::Plugin& plugin,
                      const std::string& headline) {
  try {
    entry.register_plugin(&plugin);
  } catch (...) {
    fail(ErrorKind::plugin, headline,
         "\n  it threw while it registered: ", describe_current_exception());
  }
}

std::unique_ptr<LoadedPlugin> register_and_check(const PluginEntry& entry, const Manifest& manifest,
                                                 std::string file, const LoadProgress& progress) {
  const std::string headline = cannot_use(manifest, file);
  auto loaded = std::make_unique<LoadedPlugin>();
  loaded->manifest = manifest;
  loaded->file = std::move(file);

  if (progress) progress("its components were registered");
  run_registration(entry, loaded->registered, headline);

  if (progress) progress("its registrations were checked");
  std::vector<std::string> problems;
  compare_with_manifest(manifest, loaded->registered, problems);
  const bool differs = !problems.empty();
  compare_summaries(manifest, loaded->registered, problems);
  for (const Component& component : loaded->registered.components())
    check_defaults(component.schema, "", component.kind + " '" + component.name + "'", problems);
  if (!problems.empty()) {
    std::string report = headline + "\n  its registrations are wrong:";
    for (const std::string& problem : problems) report += "\n    " + problem;
    if (differs)
      report += "\n  PROVIDES of titan_add_plugin() must name exactly what TITAN_PLUGIN registers";
    throw Error(ErrorKind::plugin, report);
  }
  return loaded;
}

}  // namespace

std::string describe_current_exception() {
  try {
    throw;
  } catch (const titan::Error& e) {
    return e.what();
  } catch (const std::exception& e) {
    return demangled(typeid(e).name()) + ": " + e.what();
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    return "an exception of type " + (type ? demangled(type->name()) : std::string("unknown"));
  }
}

std::unique_ptr<LoadedPlugin> load_plugin(const std::filesystem::path& file,
                                          const Manifest& manifest, const LoadProgress& progress) {
  const PluginEntry& entry = open_library(file, manifest, progress);
  return register_and_check(entry, manifest, file.string(), progress);
}

std::unique_ptr<LoadedPlugin> load_plugin(const BuiltInPlugin& plugin, const Manifest& manifest) {
  return register_and_check(*plugin.entry(), manifest, "built in", {});
}

}  // namespace titan::core
