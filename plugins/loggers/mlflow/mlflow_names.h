// Titan's names and values in the form that MLflow takes. Used by the mlflow logger.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/value.h>

namespace titan::loggers {

/// A name of letters, digits and "_-.:/ ", at most 250 bytes, whose parts between slashes are
/// names: "throughput(tps)" -> "throughput_tps", "mfu(%)" -> "mfu_pct".
std::string mlflow_key(std::string_view tag);

/// NaN and infinities are words: "NaN", "Infinity", "-Infinity".
Value mlflow_number(double value);

/// At most `most` bytes, cut between characters.
std::string cut_text(const std::string& text, size_t most);

using MlflowParams = std::vector<std::pair<std::string, std::string>>;

/// The members of a map, of those that are maps by their path: {"training": {"steps": 3}} ->
/// "training.steps" = "3". Lists are JSON; what is unset is left out.
MlflowParams mlflow_params(const Value& config);

}  // namespace titan::loggers
