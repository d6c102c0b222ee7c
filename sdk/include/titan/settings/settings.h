// One setting as the user wrote it: a key path, its value and their source ranges. A file or a
// command line is a list of settings in the order of writing; all code between reading and
// resolving works on such lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <titan/value.h>

#include <titan/export.h>
#include <titan/settings/source_range.h>

namespace titan {

/// {"training", "dataloader", "num_workers"}
using KeyPath = std::vector<std::string>;

/// "training.dataloader.num_workers"
TITAN_API std::string dotted(const KeyPath& path);
/// The parts between the dots; at least one.
TITAN_API KeyPath split_dotted(std::string_view path);
/// Whether `path` is `section` or inside it.
TITAN_API bool begins_with(const KeyPath& path, const KeyPath& section);

/// An item of a list and its source range. Items of inner lists follow one another.
struct ItemPlace {
  Value value;  ///< not a list
  SourceRange where;
  size_t index = 0;  ///< its index in the outer list, or the index of its inner list
};

struct Setting {
  KeyPath path;
  Value value;          ///< never a map: tables are flattened
  SourceRange key;      ///< the last part of the key
  SourceRange where;    ///< the value
  std::string spelled;  ///< the name as the user wrote it, if that is an old name; else empty
  std::vector<ItemPlace> items = {};  ///< of a list in a file
  bool is_reported = false;  ///< the value is invalid for every option and was already reported
};

/// A table header, kept so that an empty or unknown section can be reported at its place.
struct TableHeader {
  KeyPath path;
  SourceRange where;
};

struct SettingList {
  std::vector<Setting> settings;
  std::vector<TableHeader> tables;
};

}  // namespace titan
