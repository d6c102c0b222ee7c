// Chooses the components of a configuration: looks each name up, adds its options to the option
// table, and reports names that no plugin provides. Used by resolve().
#pragma once

#include <string>
#include <vector>

#include <titan/settings/diagnostics.h>

#include "core/config/schema/component_lookup.h"
#include "core/config/schema/job_config.h"
#include "core/config/schema/option_table.h"
#include "core/config/selection/parallelism_selection.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// A component that was found, before its options are known.
struct ChosenComponent {
  enum class Use { only_one, training_data, validation_data };
  const Component* component = nullptr;  ///< never null
  KeyPath section;          ///< section of its options: {"optimizer"}, {"dataset", "c4"}
  SourceRange where;        ///< the value that chose it
  Use use = Use::only_one;  ///< distinguishes several of one kind
};

/// Chooses by the names in `given`, or their defaults. Adds the options of found components to the
/// table; the sections of others are left unchecked.
std::vector<ChosenComponent> choose_components(const GivenValues& given,
                                               const std::vector<ParallelismRequest>& parallelisms,
                                               ComponentLookup& lookup, OptionTable& table,
                                               Diagnostics& diagnostics);

/// Reports sections of components that are not chosen, such as [dataset.other]: a warning, or an
/// error when there is no such component. In both cases their keys are left unchecked.
void check_unchosen_sections(const SettingList& source, ComponentLookup& lookup, OptionTable& table,
                             Diagnostics& diagnostics);

/// Adds options of components that are not chosen but that torchtitan's files may contain: they are
/// checked and have no effect. Those of a component that is not installed are left unchecked.
void add_unchosen_keys(const SettingList& file, const std::vector<std::string>& arguments,
                       ComponentLookup& lookup, OptionTable& table);

/// The preset of [model] flavor; null, and reported, when there is none or it does not fit the
/// model's options.
const Flavor* choose_flavor(const Component& model, const std::string& name,
                            const SourceRange& where, ComponentLookup& lookup,
                            Diagnostics& diagnostics);

}  // namespace titan::core
