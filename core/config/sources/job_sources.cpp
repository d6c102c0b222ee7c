#include "core/config/sources/job_sources.h"

#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/installation.h>
#include <titan/settings/toml_source.h>

#include "core/config/schema/job_sections.h"
#include "core/config/sources/collect.h"
#include "core/config/sources/command_line.h"

namespace titan::core {
namespace {

/// `file` is absent when it could not be read.
JobSources complete(JobSources sources, std::optional<SettingList> file,
                    const Diagnostics& diagnostics) {
  if (!file) throw ConfigError(diagnostics);
  sources.file = *std::move(file);
  sources.found = diagnostics;
  const Collected collected = peek_core_keys(sources.file, sources.arguments, 1);
  const Given* paths = collected.given.find("plugins.paths");
  if (paths && paths->is_valid)
    for (const Value& path : paths->value.as_list())
      sources.plugin_paths.push_back(path.as_string());
  const Given* allowed = collected.given.find("plugins.allow_unsigned");
  sources.allows_unsigned = allowed && allowed->is_valid && allowed->value.as_boolean();
  const Given* lock = collected.given.find("plugins.lock");
  if (lock && lock->is_valid && lock->value.is_string()) {
    sources.plugin_lock = lock->value.as_string();
  } else if (sources.config_file) {
    const std::filesystem::path neighbour = lock_file_of(*sources.config_file);
    std::error_code error;
    if (std::filesystem::is_regular_file(neighbour, error))
      sources.plugin_lock = neighbour.string();
  }
  return sources;
}

/// The text of a core key, before any component is known; nothing if it is not given or invalid.
std::optional<std::string> given_text(const JobSources& sources, std::string_view key) {
  const Collected first = peek_core_keys(sources.file, sources.arguments, 1);
  const Given* given = first.given.find(key);
  return given && given->is_valid && given->value.is_string()
             ? std::optional(given->value.as_string())
             : std::nullopt;
}

}  // namespace

JobSources read_sources(std::vector<std::string> arguments) {
  JobSources sources;
  Diagnostics diagnostics;
  sources.config_file = find_config_file(arguments);
  if (sources.config_file) sources.config_file = with_bundled_files(*sources.config_file);
  sources.arguments = std::move(arguments);
  std::optional<SettingList> file = SettingList();
  if (sources.config_file && sources.config_file->empty()) {
    const auto shown = std::make_shared<const SourceText>(
        SourceText{"command line", {"--job.config_file \"\""}, false});
    diagnostics.error({shown, 1, 19, 2}, "--job.config_file needs the name of a file, got ''",
                      "leave it out to use defaults and flags only");
    file.reset();
  } else if (sources.config_file) {
    file = read_toml(*sources.config_file, diagnostics);
  }
  return complete(std::move(sources), std::move(file), diagnostics);
}

JobSources read_sources(const std::string& name, const std::string& toml,
                        std::vector<std::string> arguments) {
  JobSources sources;
  Diagnostics diagnostics;
  sources.config_file = name;
  sources.arguments = std::move(arguments);
  return complete(std::move(sources), parse_toml(name, toml, diagnostics), diagnostics);
}

Catalog plugin_catalog(const JobSources& sources) {
  std::vector<std::filesystem::path> folders = plugin_search_path(sources.plugin_paths);
  if (!sources.plugin_lock) return Catalog(std::move(folders));
  std::error_code error;
  if (sources.allows_unsigned && !std::filesystem::exists(*sources.plugin_lock, error)) {
    log::warn(
        "the lock file " + *sources.plugin_lock +
        " does not exist: plugins are loaded unsigned, because plugins.allow_unsigned is set");
    return Catalog(std::move(folders));
  }
  return Catalog(std::move(folders), LockedFiles(*sources.plugin_lock, sources.allows_unsigned));
}

bool simulates_ranks(const JobSources& sources) {
  return given_text(sources, "comm.mode") == "fake_backend";
}

std::string dump_folder_of(const JobSources& sources) {
  return given_text(sources, "job.dump_folder").value_or(JobSection{}.dump_folder);
}

}  // namespace titan::core
