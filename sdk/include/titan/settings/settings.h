// One thing that somebody wrote: a key path, its value and where. A file or a command line is a
// list of these, in the order of writing; everything between reading and resolving works on such
// lists.
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
/// Whether `path` is `section` or lies in it.
TITAN_API bool begins_with(const KeyPath& path, const KeyPath& section);

/// An item of a list and where it stands. Items of inner lists follow one another.
struct ItemPlace {
  Value value;  ///< no list
  SourceRange where;
  size_t index = 0;  ///< of the outer list's item that it is, or is in
};

struct Setting {
  KeyPath path;
  Value value;          ///< never a map: tables are flattened
  SourceRange key;      ///< the last part of the key
  SourceRange where;    ///< the value
  std::string spelled;  ///< the name as the user wrote it, when that is an old name; else empty
  std::vector<ItemPlace> items = {};  ///< of a list in a file
  bool is_reported = false;           ///< no option can have this value, which was said
};

/// A table header, kept so that an empty or unknown section can be reported where it stands.
struct TableHeader {
  KeyPath path;
  SourceRange where;
};

struct SettingList {
  std::vector<Setting> settings;
  std::vector<TableHeader> tables;
};

}  // namespace titan
