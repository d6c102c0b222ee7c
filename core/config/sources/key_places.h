// Where the keys of a job were written, kept for errors that are found after the keys were checked:
// what a component finds wrong, what does not fit the model, a file that is not there.
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

/// The key that an error is about.
struct NamedKey {
  std::string key;    ///< "model.n_heads"; empty when the error names none that was written
  SourceRange where;  ///< its value
  std::vector<SourceRange> items = {};  ///< of its list, those that the error quotes
  bool is_sound = true;                 ///< false: a key that it names was reported already
};

class KeyPlaces {
 public:
  KeyPlaces() = default;
  KeyPlaces(const OptionTable& table, const GivenValues& given, const SettingList& file);

  /// The first key that `message` names and that was written. A key is named by its whole path
  /// ("model.n_heads"), or when it stands in `section`, that of the component which speaks, as
  /// "option 'n_heads'", "n_heads = 7" or by a name with an underscore.
  NamedKey named_in(std::string_view message, const std::string& section) const;
  /// Where the key's value, or else the header of a section stands; without a source when neither
  /// was written.
  SourceRange place(const std::string& key) const;
  /// Where item `index` of the key's list stands.
  SourceRange item_place(const std::string& key, size_t index) const;
  /// Whether a value in the section, or of the key, was found to be wrong.
  bool has_unsound(std::string_view key_or_section) const;
  /// Whether an option of the component was found to be wrong.
  bool has_unsound(const Selection& component) const;

 private:
  std::map<std::string, Given, std::less<>> given_;  // by dotted path
  std::map<std::string, SourceRange, std::less<>> sections_;
  std::set<std::string, std::less<>> known_;  // every key there is
};

}  // namespace titan::core
