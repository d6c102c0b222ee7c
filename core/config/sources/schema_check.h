// Checks the settings of a source against the option table: unknown sections and keys, wrong types,
// values out of range. Used by collect.cpp.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <titan/settings/diagnostics.h>
#include <titan/settings/settings.h>

#include "core/config/schema/option_table.h"

namespace titan::core {

/// The value of one key and its place.
struct Given {
  Value value;
  SourceRange key, where;
  bool is_valid = true;               ///< false: reported already, do not use `value`
  std::vector<ItemPlace> items = {};  ///< of a list in a file
};

/// The given values by key; a later source replaces an earlier one.
class GivenValues {
 public:
  void put(const KeyPath& path, Given given) { values_[path] = std::move(given); }
  /// Null when the key was left at its default.
  const Given* find(const KeyPath& path) const;
  const Given* find(std::string_view dotted_path) const { return find(split_dotted(dotted_path)); }
  /// Where the key's value was written; without a source for a default.
  SourceRange place(std::string_view dotted_path) const;
  /// The place for an error of a rule about `key`: the value of `key`, or a command-line value of
  /// another key that `message` names, since that was given last.
  SourceRange place_of_rule(std::string_view key, std::string_view message) const;
  /// Where item `index` of the key's list was written; as above when only the whole list is known.
  SourceRange item_place(std::string_view dotted_path, size_t index) const;
  bool is_sound(std::string_view dotted_path) const;
  const std::map<KeyPath, Given>& all() const { return values_; }

 private:
  std::map<KeyPath, Given> values_;
};

/// Checks one source and puts its values into `given`, over those of earlier sources.
void check_settings(const SettingList& source, const OptionTable& table, GivenValues& given,
                    Diagnostics& diagnostics);

}  // namespace titan::core
