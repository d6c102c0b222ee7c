// The code points that Unicode assigned after version 14, up to version 16, with their categories.
//
// The reference tokenizers' regex engine knows Unicode 16; the PCRE2 and utf8proc of current
// distributions know versions from 14 on. With this table the ids do not depend on the system's
// libraries. On libraries that know the characters already it changes nothing.
#pragma once

#include <string>
#include <string_view>

#include <utf8proc.h>

namespace titan::bpe {

/// Category of a code point that utf8proc does not know; CN when it is not assigned here either.
utf8proc_category_t added_category(char32_t code_point);

/// Lower case of a letter that utf8proc does not know; the code point itself when there is none
/// here.
char32_t added_lower_case(char32_t code_point);

/// The added code points of a category ("Lu") or a major class ("L"), as the inside of a PCRE2
/// character class: "\x{1C89}-\x{1C8A}\x{A7CB}...". Empty when there are none.
std::string added_class_items(std::string_view category);

}  // namespace titan::bpe
