// The indexes that the user has added, with their pinned keys, in the user's configuration folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <titan/program/environment.h>

#include "minisign.h"

namespace titan::plugin_index {

struct AddedIndex {
  std::string name;
  std::string address;  ///< URL or absolute path of a folder
  PublicKey key;
  int64_t counter = 0;  ///< the largest that was seen
};

/// $XDG_CONFIG_HOME/titan/plugin_indexes.json, or the same in ~/.config. Throws a config Error
/// without both variables.
std::filesystem::path store_file(const Environment& environment);

class IndexStore {
 public:
  /// A missing file is an empty store. Throws an Error that names the file if it is damaged.
  explicit IndexStore(std::filesystem::path file);

  const std::filesystem::path& file() const { return file_; }
  const std::vector<AddedIndex>& indexes() const { return indexes_; }
  /// Null if there is none.
  const AddedIndex* find(std::string_view name) const;
  const AddedIndex* find_address(std::string_view address) const;

  /// Adds or replaces the index of that name, and writes the file.
  void put(const AddedIndex& index);
  void remove(std::string_view name);

 private:
  void write() const;

  std::filesystem::path file_;
  std::vector<AddedIndex> indexes_;
};

}  // namespace titan::plugin_index
