// Everything that the program and its plugins declare, as one JSON value. Shell completion, the man
// pages and the schema for editors are made from it. Used by `titan describe --all --json`.
#pragma once

#include <vector>

#include <titan/value.h>

#include "core/commands/command.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// A map of
/// - `commands`: name, usage, summary, `flags` (flag, short, value, help, choices), words and
///   whether it takes a job's keys or a command line;
/// - `sections`: the core's sections by name, each a JSON Schema (titan describe SECTION --json);
/// - `components`: kind, name, description, plugin, `properties`, and `sections`, the dotted names
///   of the sections that hold its options; "*" stands for any name;
/// - `flavors` (model, name, description), `kinds`;
/// - `keys_of_kinds`: the keys whose values are names of components, with the kind, and a
///   further word that the key accepts;
/// - `old_keys`: accepted older keys, with the type of their values and the current key;
/// - `files`: each plugin file, and `problem` if its manifest does not fit;
/// - `unusable`: components that cannot be opened: kind, name, file, problem. No other part has
/// them. Opens every plugin file that exists.
Value declarations(const std::vector<CommandRow>& own_commands, const Catalog& catalog,
                   Registry& registry);

}  // namespace titan::core
