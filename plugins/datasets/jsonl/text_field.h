// The text of one JSON line. Used by the jsonl dataset.
#pragma once

#include <string>
#include <string_view>

namespace titan::datasets {

/// The string member `field` of the JSON object that is all of `line`. Throws a data Error that
/// says what is wrong and shows where, without naming the file: malformed JSON, NUL bytes, invalid
/// UTF-8, no object, no such member, no string.
std::string text_field(std::string_view line, const std::string& field);

}  // namespace titan::datasets
