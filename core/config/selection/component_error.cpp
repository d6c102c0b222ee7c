#include "core/config/selection/component_error.h"

#include <filesystem>
#include <string>
#include <system_error>

#include <glob.h>

#include "core/config/sources/key_places.h"

namespace titan::core {
namespace {

const KeyPlaces& places_of(const JobConfig& config) {
  static const KeyPlaces kNone;
  return config.places ? *config.places : kNone;
}

NamedKey named_key(const Error& error, const JobConfig& config) {
  const auto* of_component = dynamic_cast<const ComponentError*>(&error);
  return places_of(config).named_in(error.message(),
                                    of_component ? of_component->component().section : "");
}

}  // namespace

const Selection* component_of(const Error& error) {
  if (const auto* found = dynamic_cast<const ComponentError*>(&error)) return &found->component();
  if (const auto* found = dynamic_cast<const ComponentReport*>(&error)) return &found->component();
  return nullptr;
}

bool is_absent(const std::string& path) {
  const auto matches = [](const std::string& pattern) {
    glob_t found{};
    const bool any = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0;
    ::globfree(&found);
    return any;
  };
  std::error_code ignored;
  return !path.empty() && !std::filesystem::exists(path, ignored) && !matches(path) &&
         !matches(path + ".*");
}

Diagnostic mistake_of(const Error& error, const JobConfig& config) {
  const std::string all = error.what();
  const size_t line_end = all.find('\n');
  Diagnostic mistake;
  mistake.message = all.substr(0, line_end);
  if (line_end != std::string::npos) mistake.details = all.substr(line_end + 1);
  const NamedKey named = named_key(error, config);
  mistake.where = named.items.empty() ? named.where : named.items.front();
  if (const auto* of_component = dynamic_cast<const ComponentError*>(&error)) {
    const Selection& component = of_component->component();
    if (!mistake.where) mistake.where = component.where;
    if (!mistake.where) mistake.where = places_of(config).place(component.section);
    mistake.see = "titan describe " + component.kind + " " + component.name;
  }
  return mistake;
}

void refuse_path(const Error& error, const std::string& path_key, const std::string& path,
                 const JobConfig& config) {
  const bool absent = is_absent(path);
  const bool speaks_of_it = error.kind() == ErrorKind::config && !path.empty() &&
                            error.message().find("'" + path + "'") != std::string::npos;
  if (!absent && !speaks_of_it) return;
  const SourceRange where = places_of(config).place(path_key);
  Diagnostics diagnostics;
  if (absent)
    diagnostics.add({.message = path_key + ": there is nothing at '" + path + "'" +
                                (where ? "" : ", the default"),
                     .where = where,
                     .hint = path.starts_with('/') ? "" : "relative to the working folder",
                     .details = std::string("  ") + error.what()});
  else if (where && !named_key(error, config).where)
    diagnostics.add({.message = error.message(), .where = where});
  if (!diagnostics.can_start()) throw ConfigError(diagnostics);
}

void add_mistakes(const Error& error, const JobConfig& config, Diagnostics& diagnostics) {
  if (const auto* report = dynamic_cast<const ConfigError*>(&error)) {
    diagnostics.add(report->diagnostics());
    return;
  }
  const NamedKey named = named_key(error, config);
  if (!named.is_sound) return;
  Diagnostic mistake = mistake_of(error, config);
  diagnostics.add(mistake);
  mistake.details.clear();
  for (const SourceRange& item : named.items) {  // the first is a duplicate, which is ignored
    mistake.where = item;
    diagnostics.add(mistake);
  }
}

}  // namespace titan::core
