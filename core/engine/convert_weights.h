// Weights from one form of files into another. Used by engines.cpp.
#pragma once

#include <titan/conversion.h>
#include <titan/value.h>

#include "core/engine/chosen_model.h"
#include "core/exchange/conversion.h"

namespace titan::core {

/// As EngineHost::convert.
ConversionResult convert_weights(const ConversionRequest& request, const ReportConverted& report);

// Of its directions:

ConversionResult convert_to_hf(const ConversionRequest& request, const ReportConverted& report);

/// As safetensors names it; empty: as stored.
std::string stored_dtype(const ConversionRequest& request);

/// What tells a conversion from any other. `source`: what is read.
Value conversion_identity(const ConversionRequest& request, const Value& source,
                          const ChosenModel& chosen);

ConversionResult run_and_report(Conversion& conversion, const ConversionRequest& request,
                                const ReportConverted& report);

}  // namespace titan::core
