#include "core/plugin/listing.h"

#include <algorithm>
#include <vector>

#include <titan/program/text_table.h>
#include <titan/shown_text.h>

#include "core/base/wrap_text.h"
#include "core/plugin/compatibility.h"

namespace titan::core {
namespace {

const std::string kNotBuilt = "(not built)";

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

}  // namespace

std::string why_unusable(const CatalogEntry& entry) {
  if (!entry.problem.empty()) return entry.problem;
  if (!entry.build_command.empty()) return "";
  const auto found = differences(entry.manifest, host_manifest());
  if (is_compatible(found)) return "";
  return "cannot use plugin '" + entry.manifest.plugin + "' from " + shown_file(entry) +
         ": built with " + summary(found);
}

namespace {

/// The kinds to show: Titan's own first, then other kinds that plugins name.
std::vector<std::string> kinds_to_show(const Catalog& catalog, std::string_view kind) {
  if (!kind.empty()) return {std::string(kind)};
  std::vector<std::string> kinds = plugin_kinds();
  for (const CatalogEntry& entry : catalog.entries())
    for (const Provided& provided : entry.manifest.provides)
      if (std::find(kinds.begin(), kinds.end(), provided.kind) == kinds.end())
        kinds.push_back(provided.kind);
  return kinds;
}

/// Usable providers of each component; `repeated` gets the names that have several providers.
std::vector<UsedComponent> usable(const Catalog& catalog, std::string_view kind,
                                  std::string& repeated) {
  std::vector<UsedComponent> all;
  for (const std::string& shown : kinds_to_show(catalog, kind))
    for (const std::string& name : catalog.names(shown)) {
      const auto providers = catalog.providers(shown, name);
      for (const CatalogEntry* entry : providers)
        if (why_unusable(*entry).empty()) all.push_back({shown, name, entry});
      if (providers.size() < 2) continue;
      repeated += "  " + printable(shown) + " " + in_quotes(name) + "\n";
      for (const CatalogEntry* entry : providers)
        repeated += "    " + printable(shown_file(*entry), std::string::npos) + "\n";
    }
  return all;
}

std::string file_table(const std::vector<UsedComponent>& all) {
  std::vector<TextRow> rows{{"kind", "name", "plugin", "version", "file"}};
  for (const UsedComponent& one : all)
    rows.push_back({one.kind, one.name, one.entry->manifest.plugin, version_of(*one.entry),
                    shown_file(*one.entry)});
  return text_table(rows);
}

/// Kind, name and text of each row; the flavors of a model are joined: "1B, 8B, 70B".
std::vector<TextRow> summary_rows(const std::vector<UsedComponent>& all) {
  std::vector<TextRow> rows{{"kind", "name", "what it is"}};
  for (const UsedComponent& one : all) {
    const size_t slash = one.name.find('/');
    if (one.kind == "flavor" && slash != std::string::npos) {
      const std::string model = one.name.substr(0, slash), flavor = one.name.substr(slash + 1);
      if (rows.back()[0] == one.kind && rows.back()[1] == model)
        rows.back()[2] += ", " + flavor;
      else
        rows.push_back({one.kind, model, flavor});
      continue;
    }
    std::string text(one.entry->manifest.summary(one.kind, one.name));
    if (!one.entry->build_command.empty()) text += (text.empty() ? "" : " ") + kNotBuilt;
    rows.push_back({one.kind, one.name, text});
  }
  return rows;
}

/// The last column is broken between words.
std::string summary_table(const std::vector<UsedComponent>& all) {
  constexpr size_t kColumns = 100, kGap = 2, kNarrowest = 30;
  std::vector<TextRow> rows = summary_rows(all), lines;
  size_t left = 0;
  for (size_t cell = 0; cell < 2; ++cell) {
    size_t widest = 0;
    for (const TextRow& row : rows) widest = std::max(widest, columns_of(printable(row[cell])));
    left += widest + kGap;
  }
  const size_t width = left + kNarrowest < kColumns ? kColumns - left : kNarrowest;
  for (TextRow& row : rows) {
    for (const std::string& line : wrap_text(printable(row[2], row[2].size()), width)) {
      row[2] = line;
      lines.push_back(row);
      row[0] = row[1] = "";
    }
  }
  return text_table(lines);
}

}  // namespace

std::string listing(const std::vector<UsedComponent>& used, Columns columns) {
  if (columns == Columns::files) return file_table(used);
  std::vector<TextRow> rows{{"kind", "name", "plugin"}};
  for (const UsedComponent& one : used)
    rows.push_back({one.kind, one.name, one.entry->manifest.plugin});
  return text_table(rows);
}

std::string listing(const Catalog& catalog, std::string_view kind, Columns columns) {
  std::string repeated;
  const std::vector<UsedComponent> all = usable(catalog, kind, repeated);
  std::string unusable;
  for (const CatalogEntry& entry : catalog.entries())
    if (const std::string why = why_unusable(entry);
        !why.empty() && (!entry.problem.empty() || provides_kind(entry, kind)))
      unusable += "  " + printable_message(why) + "\n";

  std::string text;
  if (!all.empty())
    text = columns == Columns::files ? file_table(all) : summary_table(all);
  else
    text = "no plugin" + (kind.empty() ? "" : " of kind '" + std::string(kind) + "'") +
           " was found\n  " + catalog.search_trail() + "\n";
  if (!unusable.empty()) text += "\nunusable here:\n" + unusable;
  if (!repeated.empty()) text += "\nprovided more than once, an error when selected:\n" + repeated;
  return text;
}

}  // namespace titan::core
