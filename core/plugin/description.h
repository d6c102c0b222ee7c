// The output of `titan describe`, as text and as JSON Schema.
#pragma once

#include <string>
#include <string_view>

#include <titan/schema.h>
#include <titan/value.h>

#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// The names of one kind, each with its registered help sentence; for a plugin that fails to open,
/// the reason instead. Opens every plugin that provides the kind.
std::string describe_kind(const Catalog& catalog, Registry& registry, std::string_view kind);

/// A section of a job: its help, its keys with default, allowed values and help.
std::string describe_section(const std::string& section, const std::string& help,
                             const Schema& schema);

/// One component: its help, its origin, its abilities, its options with default, allowed values and
/// help; of a model also its flavors with their presets. A flavor is named "<model>/<flavor>".
/// Throws as the registry does.
std::string describe_component(const Catalog& catalog, Registry& registry, std::string_view kind,
                               std::string_view name);

/// The same as JSON Schema of the options map, with x-titan-kind, -name, -plugin, -version, -file,
/// -abilities and, of a model, -flavors.
Value component_json(const Catalog& catalog, Registry& registry, std::string_view kind,
                     std::string_view name);

}  // namespace titan::core
