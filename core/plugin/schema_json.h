// Writes an option schema as JSON Schema (draft 2020-12), for editors, completion and
// documentation. Facts that JSON Schema cannot express are in keys that begin with x-titan-. Used
// by `titan describe --json`.
#pragma once

#include <titan/options.h>
#include <titan/value.h>

namespace titan::core {

/// {"type": "object", "properties": {...}, "additionalProperties": false}. Each property has its
/// type, default, bounds, choices and help; sizes and durations are a number or a string with a
/// unit, and say so in "x-titan-type".
Value json_schema(const Schema& schema);

}  // namespace titan::core
