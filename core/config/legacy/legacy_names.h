// Translates the key names of torchtitan's 2024 configurations by a table. Each is accepted with
// one warning that gives the current name. Used by collect.cpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <titan/options.h>
#include <titan/settings/diagnostics.h>
#include <titan/settings/settings.h>

#include "core/config/schema/option_table.h"

namespace titan::core {

/// How a value under an old name becomes one under the new name.
enum class Translation {
  same,                ///< the value is unchanged
  inverted,            ///< true means false
  schedule,            ///< spelling of a pipeline schedule
  fused,               ///< true: "fused", false: "foreach"
  no_effect,           ///< accepted and ignored
  refused,             ///< an error that names the replacement
  norm_type,           ///< the kinds of RMSNorm are ignored, others refused
  interval_type,       ///< "steps" is ignored, others refused
  data_parallel_type,  ///< "fsdp" is ignored, "ddp" replicates over all ranks
  append_float8,       ///< true or a string: adds a converter
  mx_recipe,           ///< "mxfp8" has been renamed, others are unchanged
  // These need more than the value and are translated once the model is known:
  flex_attention,
  attention_mask,
  split_points,
  microbatches,
};

struct OldName {
  std::string_view old_key;
  std::string_view new_key;  ///< empty when there is none
  Translation how;
  OptionType flag;  ///< type of the flag's value
  std::string_view hint = {};
};

/// Every old name whose key or meaning has changed; unchanged names are in the schemas.
std::span<const OldName> old_names();
/// Older names of converters: "float8" is quantize.linear.float8. Other names are returned
/// unchanged.
std::string_view current_converter_name(std::string_view name);
/// torchtitan's "llama3_ft" is llama3, whose fragments [fault_tolerance] names. Other names are
/// returned unchanged.
std::string_view current_model_name(std::string_view name);

/// Adds the old names as flags.
void add_old_flags(OptionTable& table);

/// An old name whose translation waits for the rest of the configuration.
struct OldRequest {
  Translation how;
  Setting setting;
};

struct TranslatedSettings {
  SettingList list;
  std::vector<OldRequest> later;
};

/// Translates one source (the file, or the command line). An old and a new name for the same key
/// are an error unless their values are equal. Names that are options of a selected component are
/// not translated.
TranslatedSettings translate_old_names(const SettingList& source, const OptionTable& table,
                                       int world_size, Diagnostics& diagnostics);

}  // namespace titan::core
