// Translates the old names whose translation needs the rest of the configuration. Used by
// resolve().
#pragma once

#include <string>
#include <vector>

#include <titan/settings/diagnostics.h>

#include "core/config/legacy/legacy_names.h"
#include "core/config/schema/component_lookup.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// Adds the float8 converter if an old flag requests it. Called before components are chosen.
void append_old_converters(const std::vector<OldRequest>& requests, GivenValues& given);

/// The flavor that model.use_flex_attn selects; reports "not built" when the model has none.
std::string flavor_for_old_attention(const std::vector<OldRequest>& requests,
                                     const std::string& model, std::string flavor,
                                     ComponentLookup& lookup, Diagnostics& diagnostics);

/// model.attn_mask_type = "block_causal" -> data.isolate_documents.
void translate_old_mask(const std::vector<OldRequest>& requests, GivenValues& given,
                        Diagnostics& diagnostics);

/// Split points and microbatch counts become module lists and the microbatch size. `model_options`:
/// all of the model's options; `local_batch_size`: the final value.
void translate_old_pipeline(const std::vector<OldRequest>& requests, const Value& model_options,
                            int64_t local_batch_size, GivenValues& given, Diagnostics& diagnostics);

}  // namespace titan::core
