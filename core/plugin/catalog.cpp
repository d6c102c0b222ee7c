#include "core/plugin/catalog.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <system_error>

#include <titan/error.h>
#include <titan/program/environment.h>

#include "core/plugin/built_in.h"
#include "core/plugin/kinds.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".plugin.so";

/// The path with links resolved, to compare two paths.
fs::path real_path(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? path : real;
}

std::vector<fs::directory_entry> plugin_files(const fs::path& folder) {
  std::vector<fs::directory_entry> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename().string().ends_with(kSuffix)) files.push_back(*entry);
  std::sort(files.begin(), files.end());
  return files;
}

CatalogEntry read_entry(const fs::path& file) {
  CatalogEntry entry;
  entry.file = file;
  try {
    entry.manifest = read_manifest(file);
  } catch (const Error& e) {
    entry.problem = e.message();
  }
  return entry;
}

/// The plugins of a build tree that have no file yet.
std::vector<CatalogEntry> unbuilt_plugins(const fs::path& folder) {
  constexpr std::string_view kCommand = "# build: ";
  std::vector<CatalogEntry> entries;
  std::ifstream list(folder / "plugins.txt");
  constexpr std::string_view kSummary = "# summary ";
  std::string command;
  std::map<std::string, std::string> summaries;
  for (std::string line; std::getline(list, line);) {
    if (line.starts_with(kCommand)) command = line.substr(kCommand.size());
    if (const size_t colon = line.find(": "); line.starts_with(kSummary) && colon != line.npos)
      summaries[line.substr(kSummary.size(), colon - kSummary.size())] = line.substr(colon + 2);
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    CatalogEntry entry;
    std::error_code error;
    if (!(words >> entry.manifest.plugin) ||
        fs::exists(folder / (entry.manifest.plugin + std::string(kSuffix)), error))
      continue;
    for (std::string word; words >> word;)
      if (const size_t colon = word.find(':'); colon != word.npos)
        entry.manifest.provides.push_back({word.substr(0, colon), word.substr(colon + 1)});
    for (const Provided& provided : entry.manifest.provides) {
      const std::string name = provided.kind + ":" + provided.name;
      if (const auto found = summaries.find(name); found != summaries.end())
        entry.manifest.fields.emplace_back("summary:" + name, found->second);
    }
    entry.build_command = command + " " + entry.manifest.plugin;
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string counted(size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string state_of(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return error ? error.message() : "does not exist";
  if (!fs::is_directory(folder, error)) return "is not a folder";
  fs::directory_iterator(folder, error);
  if (error) return "cannot be read: " + error.message();
  return counted(plugin_files(folder).size(), "plugin file", "plugin files");
}

}  // namespace

Catalog::Catalog(std::vector<fs::path> folders, LockedFiles locked) : locked_(std::move(locked)) {
  std::set<fs::path> seen;
  for (const fs::path& file : locked_.files())
    if (seen.insert(real_path(file)).second) entries_.push_back(read_entry(file));
  for (const fs::path& named : folders) {
    const fs::path folder = fs::absolute(named).lexically_normal();
    const fs::path real_folder = real_path(folder);
    if (!seen.insert(real_folder).second) continue;
    folders_.push_back(folder);
    for (const fs::directory_entry& file : plugin_files(folder)) {
      // only a link can name a file that was found before; resolving every path would cost more
      // than reading the files
      const fs::path real =
          file.is_symlink() ? real_path(file.path()) : real_folder / file.path().filename();
      if (seen.insert(real).second) entries_.push_back(read_entry(file.path()));
    }
    for (CatalogEntry& entry : unbuilt_plugins(folder)) entries_.push_back(std::move(entry));
  }
  for (const BuiltInPlugin& plugin : built_in_plugins())
    entries_.push_back({{}, parse_manifest(plugin.manifest, "a built-in plugin"), "", ""});
}

std::vector<const CatalogEntry*> Catalog::providers(std::string_view kind,
                                                    std::string_view name) const {
  std::vector<const CatalogEntry*> found;
  for (const CatalogEntry& entry : entries_)
    for (const Provided& provided : entry.manifest.provides)
      if (provided.kind == kind && provided.name == name) found.push_back(&entry);
  return found;
}

std::vector<std::string> Catalog::names(std::string_view kind) const {
  std::set<std::string> names;
  for (const CatalogEntry& entry : entries_)
    for (const Provided& provided : entry.manifest.provides)
      if (provided.kind == kind) names.insert(provided.name);
  return {names.begin(), names.end()};
}

std::string Catalog::search_trail() const {
  std::string trail;
  size_t built_in = 0;
  for (const fs::path& folder : folders_)
    trail += "\n    " + folder.string() + ": " + state_of(folder);
  std::string unreadable;
  for (const CatalogEntry& entry : entries_) {
    built_in += entry.file.empty() && entry.build_command.empty();
    if (!entry.problem.empty()) unreadable += "\n    " + entry.problem;
  }
  if (built_in > 0)
    trail += "\n    this program: " + counted(built_in, "built-in plugin", "built-in plugins");
  if (trail.empty()) trail = "\n    no folder at all";
  trail = "looked in" + trail;
  if (!unreadable.empty()) trail += "\n  passed over" + unreadable;
  return trail;
}

FlavorName split_flavor(std::string_view name, const std::vector<std::string>& models) {
  size_t slash = name.rfind('/');
  TITAN_CHECK(slash != std::string_view::npos, config, "a flavor is named <model>/<flavor>, got '",
              name, "'");
  for (size_t at = slash; at != std::string_view::npos && at > 0; at = name.rfind('/', at - 1))
    if (std::find(models.begin(), models.end(), name.substr(0, at)) != models.end()) {
      slash = at;
      break;
    }
  return {std::string(name.substr(0, slash)), std::string(name.substr(slash + 1))};
}

std::vector<fs::path> plugin_search_path(const std::vector<std::string>& configured) {
  std::vector<fs::path> folders(configured.begin(), configured.end());
  if (const auto listed = Environment::of_process().get("TITAN_PLUGIN_PATH")) {
    std::string_view rest = *listed;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) folders.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (const fs::path own = own_plugin_folder(); !own.empty()) folders.push_back(own);
  return folders;
}

const std::vector<std::string>& plugin_kinds() {
  static const std::vector<std::string> kKinds = [] {
    std::vector<std::string> names;
    for (const PluginKind& kind : kind_table()) names.emplace_back(kind.name);
    return names;
  }();
  return kKinds;
}

}  // namespace titan::core
