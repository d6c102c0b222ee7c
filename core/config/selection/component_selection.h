// Which components a configuration chooses: looks each name up, adds its options to the option
// table, and reports names that nothing provides. Used by resolve().
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
  KeyPath section;          ///< where its options stand: {"optimizer"}, {"dataset", "c4"}
  SourceRange where;        ///< the value that chose it
  Use use = Use::only_one;  ///< several of one kind may do different things
};

/// Chooses by the names in `given`, or their defaults. The table gets the options of what is found;
/// sections of what is not found are left unchecked.
std::vector<ChosenComponent> choose_components(const GivenValues& given,
                                               const std::vector<ParallelismRequest>& parallelisms,
                                               ComponentLookup& lookup, OptionTable& table,
                                               Diagnostics& diagnostics);

/// Sections of components that nobody chose, [dataset.other]: a warning, or an error when there is
/// no such component. Either way their keys are left unchecked.
void check_unchosen_sections(const SettingList& source, ComponentLookup& lookup, OptionTable& table,
                             Diagnostics& diagnostics);

/// Options of components that nobody chose, where torchtitan's files may give them: these are
/// checked and have no effect. Of a component that is not installed they are left unchecked.
void add_unchosen_keys(const SettingList& file, const std::vector<std::string>& arguments,
                       ComponentLookup& lookup, OptionTable& table);

/// The preset of [model] flavor; null, and reported, when there is none or it does not fit the
/// model's options.
const Flavor* choose_flavor(const Component& model, const std::string& name,
                            const SourceRange& where, ComponentLookup& lookup,
                            Diagnostics& diagnostics);

}  // namespace titan::core
