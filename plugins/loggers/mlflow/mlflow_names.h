// Converts Titan's names and values to MLflow's. Used by the mlflow logger.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/value.h>

namespace titan::loggers {

/// A valid metric name: letters, digits and "_-.:/ ", at most 250 bytes, without empty
/// parts, "." or ".." between slashes. "throughput(tps)" -> "throughput_tps", "mfu(%)" ->
/// "mfu_pct".
std::string mlflow_key(std::string_view tag);

/// NaN and infinities become strings: "NaN", "Infinity", "-Infinity".
Value mlflow_number(double value);

/// `text` truncated to at most `most` bytes, between characters.
std::string cut_text(const std::string& text, size_t most);

using MlflowParams = std::vector<std::pair<std::string, std::string>>;

/// The members of a map, nested ones by their path: {"training": {"steps": 3}} -> "training.steps"
/// = "3". Lists become JSON; unset members are left out.
MlflowParams mlflow_params(const Value& config);

}  // namespace titan::loggers
