// Every option of a run by its path: the core's sections and the options of the selected
// components. This table determines the keys of a file, the flags and the output of --help. Used
// throughout core/config.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <titan/options.h>
#include <titan/plugin.h>
#include <titan/settings/settings.h>

#include "core/config/schema/component_lookup.h"

namespace titan::core {

struct KnownOption {
  KeyPath path;
  const Option* option = nullptr;
  const Component* component = nullptr;  ///< the owner; null for the core
  bool is_old_name = false;              ///< accepted as a flag only; translated by legacy_names.h
};

/// A flag's name with '_' for '-', as in names of options.
std::string with_underscores(std::string_view name);
/// The name of a component in messages: "optimizer 'SGD'".
std::string describe(const Component& component);
/// "titan describe optimizer SGD"
std::string describe_command(const Component& component);

/// A section whose component no plugin provides, and the components that may have been meant.
struct UnknownComponent {
  KeyPath section;
  std::vector<const Component*> candidates;  ///< of one kind; they outlive the table
};

class OptionTable {
 public:
  /// The core's sections.
  OptionTable();

  /// Adds the options of a component under its section. Throws a plugin Error when one of them
  /// hides a key of the core.
  void add(const KeyPath& section, const Component& component);
  /// Adds one option of a component that is not chosen, in a section that another component may
  /// own.
  void add_option(const KeyPath& section, const Component& component, std::string_view name);
  /// Adds the core's options of a source of a blend, [data.sources.<name>].
  void add_source(const std::string& name);
  /// Names of the sources, in order of appearance.
  const std::vector<std::string>& source_names() const { return source_names_; }
  /// Adds the core's options of a parameter group, [optimizer.groups.<name>].
  void add_optimizer_group(const std::string& name);
  const std::vector<std::string>& optimizer_group_names() const { return optimizer_group_names_; }
  /// Adds an old name as a flag. `option` outlives the table.
  void add_old_name(const Option& option);
  /// Marks a section whose component could not be found: unknown keys in it may be right and are
  /// not reported.
  void leave_unchecked(const KeyPath& section) { leave_unchecked(section, {}); }
  /// The same when the name was probably meant for one of `candidates`.
  void leave_unchecked(const KeyPath& section, std::vector<const Component*> candidates);
  /// The same for one key.
  void leave_key_unchecked(const KeyPath& path) { unchecked_.push_back({path, {}}); }

  const KnownOption* find(const KeyPath& path) const;
  /// The option of a flag's name without its dashes; `_` and `-` are the same. Null when there is
  /// none.
  const KnownOption* find_flag(std::string_view name) const;
  bool is_section(const KeyPath& path) const { return sections_.contains(path); }
  bool is_unchecked(const KeyPath& path) const { return unknown_at(path) != nullptr; }
  /// The unchecked section that the path is in; null when it is in none.
  const UnknownComponent* unknown_at(const KeyPath& path) const;
  /// The options that its candidates have at this path.
  std::vector<const Option*> candidate_options(const KeyPath& path) const;
  /// The component that shares this section with the core, or null.
  const Component* component_of(const KeyPath& section) const;

  /// In the order of declaration.
  const std::vector<KnownOption>& options() const { return options_; }
  /// Lets messages name components that are not chosen. `lookup` outlives the table.
  void set_lookup(ComponentLookup& lookup) { lookup_ = &lookup; }
  /// For a message: names the other components that have an option of this name, as in "is an
  /// option of lr_scheduler 'cosine', and lr_scheduler 'linear' is chosen". Empty: there are none.
  /// Opens every plugin of the kind.
  std::string owned_elsewhere(const KeyPath& section, const std::string& option) const;

  /// Names of the keys directly in a section.
  std::vector<std::string> keys_in(const KeyPath& section) const;
  /// Dotted names of all sections.
  std::vector<std::string> section_names() const;

 private:
  void add_schema(const KeyPath& section, const Schema& schema, const Component* component);
  void add_option(KnownOption known);

  std::vector<KnownOption> options_;
  std::map<KeyPath, size_t> by_path_;
  std::map<std::string, size_t, std::less<>> by_flag_;
  std::map<KeyPath, const Component*> sections_;
  std::vector<UnknownComponent> unchecked_;
  ComponentLookup* lookup_ = nullptr;
  std::vector<std::string> source_names_;
  std::vector<std::string> optimizer_group_names_;
};

}  // namespace titan::core
