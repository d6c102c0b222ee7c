// The fast way to the text of a JSON line. Used by text_field.
#pragma once

#include <string>
#include <string_view>

namespace titan::datasets {

/// Puts the string member `field` of the JSON object that is all of `line` into `text`. False means
/// "not certain", never "wrong": bad lines, and good ones that are unusual (deep nesting), are left
/// to a parser that is slower and knows what to say.
bool scan_text_field(std::string_view line, std::string_view field, std::string& text);

}  // namespace titan::datasets
