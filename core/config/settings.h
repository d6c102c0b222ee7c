// One thing that somebody wrote: a key path, its value and where. A file or a command line is a
// list of these, in the order of writing; everything between reading and resolving works on such
// lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <titan/value.h>

#include "core/config/source_range.h"

namespace titan::core {

/// {"training", "dataloader", "num_workers"}
using KeyPath = std::vector<std::string>;

/// "training.dataloader.num_workers"
std::string dotted(const KeyPath& path);
/// The parts between the dots; at least one.
KeyPath split_dotted(std::string_view path);

struct Setting {
  KeyPath path;
  Value value;          ///< never a map: tables are flattened
  SourceRange key;      ///< the last part of the key
  SourceRange where;    ///< the value
  std::string spelled;  ///< the name as the user wrote it, when that is an old name; else empty
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

}  // namespace titan::core
