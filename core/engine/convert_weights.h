// Converts weights between file formats: Hugging Face, Meta, torchtitan, Titan. Used by
// engines.cpp.
#pragma once

#include <titan/conversion.h>
#include <titan/value.h>

#include "core/engine/chosen_model.h"
#include "core/exchange/conversion.h"

namespace titan::core {

/// As EngineHost::convert.
ConversionResult convert_weights(const ConversionRequest& request, const ReportConverted& report);

// Used by the directions:

ConversionResult convert_to_hf(const ConversionRequest& request, const ReportConverted& report);

/// The requested dtype by its name in safetensors; empty: as stored.
std::string stored_dtype(const ConversionRequest& request);

/// Identifies a conversion, so that an interrupted one is only continued by the same one. `source`:
/// identifies the input.
Value conversion_identity(const ConversionRequest& request, const Value& source,
                          const ChosenModel& chosen);

ConversionResult run_and_report(Conversion& conversion, const ConversionRequest& request,
                                const ReportConverted& report);

}  // namespace titan::core
