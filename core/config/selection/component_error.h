// Turns a component's errors about its configuration into diagnostics at the key that they name.
// Used by code that makes and applies components, and by the commands.
#pragma once

#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/settings/diagnostics.h>

#include "core/config/schema/job_config.h"

namespace titan::core {

/// A config Error with the component that threw it.
class ComponentError : public Error {
 public:
  ComponentError(const Error& error, const Selection& component)
      : Error(error), component_(component) {}
  const Selection& component() const { return component_; }

 private:
  Selection component_;
};

/// A component's report, whose diagnostics have places already.
class ComponentReport : public ConfigError {
 public:
  ComponentReport(const ConfigError& report, const Selection& component)
      : ConfigError(report), component_(component) {}
  const Selection& component() const { return component_; }

 private:
  Selection component_;
};

/// The component that threw the error; null: none.
const Selection* component_of(const Error& error);

/// Runs `work`, in which `component` is made or acts: its config Errors become ComponentErrors, its
/// reports ComponentReports.
template <class Work>
decltype(auto) on_behalf_of(const Selection& component, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config || component_of(error)) throw;
    if (const auto* report = dynamic_cast<const ConfigError*>(&error))
      throw ComponentReport(*report, component);
    throw ComponentError(error, component);
  }
}

/// `error` as a diagnostic at the key that its message names; else where its component was chosen,
/// or the component's section begins.
Diagnostic mistake_of(const Error& error, const JobConfig& config);

/// Adds `error`, of kind config, to `diagnostics`. A report adds its own diagnostics; another error
/// adds one, unless it follows from a key that is wrong by itself.
void add_mistakes(const Error& error, const JobConfig& config, Diagnostics& diagnostics);

/// Whether nothing exists at the path, read as a file, a folder, a pattern or a prefix of file
/// names.
bool is_absent(const std::string& path);

/// Throws `error` as a mistake in the configuration when nothing exists at `path`, the value of
/// `path_key`, or when the error names that path.
void refuse_path(const Error& error, const std::string& path_key, const std::string& path,
                 const JobConfig& config);

/// Runs `open`, in which `component` opens `path`, the value of `path_key`.
template <class Open>
decltype(auto) opening(const Selection& component, const std::string& path_key,
                       const std::string& path, const JobConfig& config, Open&& open) {
  try {
    return on_behalf_of(component, std::forward<Open>(open));
  } catch (const Error& error) {
    refuse_path(error, path_key, path, config);
    throw;
  }
}

/// Runs `work`; a config Error that it throws becomes a report with places.
template <class Work>
decltype(auto) with_places(const JobConfig& config, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) throw;
    Diagnostics diagnostics;
    add_mistakes(error, config, diagnostics);
    if (diagnostics.can_start()) throw;
    throw ConfigError(diagnostics);
  }
}

}  // namespace titan::core
