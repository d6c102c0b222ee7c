// The names that torchtitan's configurations of 2024 used: a table, and its application to what was
// written. Each is accepted with one warning that says the name of today.
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
  same,                ///< the value as it is
  inverted,            ///< true means false
  schedule,            ///< spelling of a pipeline schedule
  fused,               ///< true: "fused", false: "foreach"
  no_effect,           ///< accepted and ignored
  refused,             ///< an error that says what to use
  norm_type,           ///< the kinds of RMSNorm are ignored, others refused
  interval_type,       ///< "steps" is ignored, others refused
  data_parallel_type,  ///< "fsdp" is ignored, "ddp" replicates over all ranks
  append_float8,       ///< true or a word: adds a converter
  mx_recipe,           ///< "mxfp8" has been renamed, others are as they were
  // These need more than the value, and are translated once the model is known:
  flex_attention,
  attention_mask,
  split_points,
  microbatches,
};

struct OldName {
  std::string_view old_key;
  std::string_view new_key;  ///< empty when there is none
  Translation how;
  OptionType flag;  ///< what the flag of this name takes
  std::string_view hint = {};
};

/// Every old name whose key or meaning has changed; names that are the same today are in the
/// schemas.
std::span<const OldName> old_names();
/// Older names of converters: "float8" is quantize.linear.float8. The name itself when it is not
/// one.
std::string_view current_converter_name(std::string_view name);

/// Makes the old names known as flags.
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

/// Translates one source (the file, or the command line). Both an old and a new name of one thing
/// is an error unless their values are equal. Names that a selected component knows as its own stay
/// as they are.
TranslatedSettings translate_old_names(const SettingList& source, const OptionTable& table,
                                       int world_size, Diagnostics& diagnostics);

}  // namespace titan::core
