// The kinds of plugins and their properties, one row a kind: the only table of kinds.
// core/config/resolve.cpp decides what a job keeps of each kind.
#pragma once

#include <span>
#include <string_view>

namespace titan::core {

struct PluginKind {
  /// Where a configuration holds the options of the kind's components.
  enum class Section {
    none,       ///< nowhere: a flavor presets those of a model, a command has flags
    kind,       ///< [optimizer]: a job has one of the kind, and the core's keys may be there too
    name,       ///< [logger.<name>], and [logger] itself is no section
    name_also,  ///< [parallelism.<name>], in addition to the keys that others declare in
                ///< [parallelism]
  };
  std::string_view name;
  Section section;
};

/// All kinds, in the order of the documentation.
std::span<const PluginKind> kind_table();

/// Null when there is no such kind.
const PluginKind* find_kind(std::string_view name);

/// Whether `name` is a kind whose components have sections of their own, [<kind>.<name>].
bool has_named_sections(std::string_view name);

}  // namespace titan::core
