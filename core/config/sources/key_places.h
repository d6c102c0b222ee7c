// Remembers where the keys of a job were written, for errors that are found after the keys were
// checked: from components, from the model, from missing files. Used by component_error.h.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <titan/settings/diagnostics.h>

#include "core/config/schema/job_config.h"
#include "core/config/schema/option_table.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// The key that an error message names.
struct NamedKey {
  std::string key;    ///< "model.n_heads"; empty when the error names no key that was written
  SourceRange where;  ///< its value
  std::vector<SourceRange> items = {};  ///< items of its list that the error quotes
  bool is_sound = true;                 ///< false: a named key was reported already
};

class KeyPlaces {
 public:
  KeyPlaces() = default;
  KeyPlaces(const OptionTable& table, const GivenValues& given, const SettingList& file);

  /// The first key that `message` names and that was written. A key is named by its whole path
  /// ("model.n_heads"). A key in `section`, the section of the component that threw the error, may
  /// also be named as "option 'n_heads'", "n_heads = 7" or by a name with an underscore.
  NamedKey named_in(std::string_view message, const std::string& section) const;
  /// The place of the key's value, or of a section's header; without a source when neither was
  /// written.
  SourceRange place(const std::string& key) const;
  /// The place of item `index` of the key's list.
  SourceRange item_place(const std::string& key, size_t index) const;
  /// Whether a value in the section, or of the key, was found to be wrong.
  bool has_unsound(std::string_view key_or_section) const;
  /// Whether an option of the component was found to be wrong.
  bool has_unsound(const Selection& component) const;

 private:
  std::map<std::string, Given, std::less<>> given_;  // by dotted path
  std::map<std::string, SourceRange, std::less<>> sections_;
  std::set<std::string, std::less<>> known_;  // every known key
};

}  // namespace titan::core
