// Categories of the code points that Unicode 15 and 16 added. Used by unicode and regex_properties.
//
// The reference tokenizers' regex engine knows Unicode 16; the PCRE2 and utf8proc of current
// distributions know versions from 14 on. With this table ids do not depend on the system's
// libraries. It changes nothing if the libraries know the characters.
#pragma once

#include <string>
#include <string_view>

#include <utf8proc.h>

namespace titan::bpe {

/// Category of a code point that utf8proc does not know; CN if the table lacks it too.
utf8proc_category_t added_category(char32_t code_point);

/// Lower case of a letter that utf8proc does not know; the code point itself if the table has none.
char32_t added_lower_case(char32_t code_point);

/// The added code points of a category ("Lu") or a major class ("L"), as the inside of a PCRE2
/// character class: "\x{1C89}-\x{1C8A}\x{A7CB}...". Empty if there are none.
std::string added_class_items(std::string_view category);

}  // namespace titan::bpe
