#include "core/plugin/listing.h"

#include <algorithm>
#include <vector>

#include <titan/program/text_table.h>
#include <titan/shown_text.h>

#include "core/plugin/compatibility.h"

namespace titan::core {
namespace {

std::string shown_file(const CatalogEntry& entry) {
  if (!entry.build_command.empty()) return "not built: " + entry.build_command;
  return entry.file.empty() ? "built in" : entry.file.string();
}

std::string version_of(const CatalogEntry& entry) {
  return entry.build_command.empty() ? entry.manifest.version : "-";
}

bool provides_kind(const CatalogEntry& entry, std::string_view kind) {
  return kind.empty() ||
         std::any_of(entry.manifest.provides.begin(), entry.manifest.provides.end(),
                     [&](const Provided& provided) { return provided.kind == kind; });
}

/// Why an entry cannot be used; empty if its manifest shows no reason.
std::string obstacle(const CatalogEntry& entry) {
  if (!entry.problem.empty()) return entry.problem;
  if (!entry.build_command.empty()) return "";
  const auto found = differences(entry.manifest, host_manifest());
  if (is_compatible(found)) return "";
  return "cannot use plugin '" + entry.manifest.plugin + "' from " + shown_file(entry) +
         ": built with " + summary(found);
}

/// The kinds to show: those of the documentation first, then any other kinds that plugins name.
std::vector<std::string> kinds_to_show(const Catalog& catalog, std::string_view kind) {
  if (!kind.empty()) return {std::string(kind)};
  std::vector<std::string> kinds = plugin_kinds();
  for (const CatalogEntry& entry : catalog.entries())
    for (const Provided& provided : entry.manifest.provides)
      if (std::find(kinds.begin(), kinds.end(), provided.kind) == kinds.end())
        kinds.push_back(provided.kind);
  return kinds;
}

}  // namespace

std::string listing(const std::vector<UsedComponent>& used) {
  std::vector<TextRow> rows{{"kind", "name", "plugin", "version", "file"}};
  for (const UsedComponent& one : used)
    rows.push_back({one.kind, one.name, one.entry->manifest.plugin, version_of(*one.entry),
                    shown_file(*one.entry)});
  return text_table(rows);
}

std::string listing(const Catalog& catalog, std::string_view kind) {
  std::vector<TextRow> rows{{"kind", "name", "plugin", "version", "file"}};
  std::string repeated;
  for (const std::string& shown : kinds_to_show(catalog, kind))
    for (const std::string& name : catalog.names(shown)) {
      const auto providers = catalog.providers(shown, name);
      for (const CatalogEntry* entry : providers)
        if (obstacle(*entry).empty())
          rows.push_back(
              {shown, name, entry->manifest.plugin, version_of(*entry), shown_file(*entry)});
      if (providers.size() < 2) continue;
      repeated += "  " + printable(shown) + " " + in_quotes(name) + "\n";
      for (const CatalogEntry* entry : providers)
        repeated += "    " + printable(shown_file(*entry), std::string::npos) + "\n";
    }

  std::string unusable;
  for (const CatalogEntry& entry : catalog.entries())
    if (const std::string why = obstacle(entry);
        !why.empty() && (!entry.problem.empty() || provides_kind(entry, kind)))
      unusable += "  " + printable_message(why) + "\n";

  std::string text;
  if (rows.size() > 1)
    text = text_table(rows);
  else
    text = "no plugin" + (kind.empty() ? "" : " of kind '" + std::string(kind) + "'") +
           " was found\n  " + catalog.search_trail() + "\n";
  if (!unusable.empty()) text += "\nunusable here:\n" + unusable;
  if (!repeated.empty()) text += "\nprovided more than once, an error when selected:\n" + repeated;
  return text;
}

}  // namespace titan::core
