// Reads the text of one JSON line. Used by the data sets of JSON lines.
#pragma once

#include <string>
#include <string_view>

namespace titan::datasets {

/// Copies the string member `field` of `line`, a JSON object, into `text`. If the member occurs
/// twice, the last one counts. Throws a data Error with the reason and an excerpt, without the
/// file: malformed JSON, NUL bytes, invalid UTF-8, no object, no such member, no string.
void read_text_field(std::string_view line, const std::string& field, std::string& text);

/// The same by the parser that explains errors. It gets the lines of which the fast scanner is not
/// certain; tests compare the two.
void read_text_field_slowly(std::string_view line, const std::string& field, std::string& text);

}  // namespace titan::datasets
