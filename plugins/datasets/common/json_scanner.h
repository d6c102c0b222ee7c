// Fast extraction of the text of a JSON line. Used by text_field.
#pragma once

#include <string>
#include <string_view>

namespace titan::datasets {

/// Copies the string member `field` of `line`, a JSON object, into `text`. False means "not
/// certain", not "wrong": invalid lines, and valid ones that are unusual (deep nesting), are left
/// to the slower parser, which explains errors.
bool scan_text_field(std::string_view line, std::string_view field, std::string& text);

}  // namespace titan::datasets
