// The text of one JSON line. Used by the data sets of JSON lines.
#pragma once

#include <string>
#include <string_view>

namespace titan::datasets {

/// Puts the string member `field` of the JSON object that is all of `line` into `text`. Of a member
/// that stands twice, the last one counts. Throws a data Error that says what is wrong and shows
/// where, without naming the file: malformed JSON, NUL bytes, invalid UTF-8, no object, no such
/// member, no string.
void read_text_field(std::string_view line, const std::string& field, std::string& text);

/// The same by the parser that can explain what is wrong: what the fast one is not certain of comes
/// here, and tests compare the two.
void read_text_field_slowly(std::string_view line, const std::string& field, std::string& text);

}  // namespace titan::datasets
