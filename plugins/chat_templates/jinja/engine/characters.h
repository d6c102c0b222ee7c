// Python's view of text: code points, white space, cases. Used by the engine's operations, methods
// and filters. All text is valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace titan::jinja {

struct Character {
  char32_t value;
  size_t length;  ///< bytes
};
/// The character at `text[at]`; `at` is its first byte.
Character character_at(std::string_view text, size_t at);
size_t num_characters(std::string_view text);
/// Start of each character in bytes, then the end of the text.
std::vector<size_t> character_starts(std::string_view text);
void append_character(std::string& text, char32_t value);

bool is_space(char32_t c);      ///< str.isspace
bool is_printable(char32_t c);  ///< str.isprintable
bool is_digit(char32_t c);      ///< \d
bool is_word(char32_t c);       ///< \w
bool is_letter(char32_t c);     ///< str.isalpha
enum class LetterCase { none, lower, upper, title };
LetterCase case_of(char32_t c);

std::string lower(std::string_view text);
std::string upper(std::string_view text);
std::string capitalize(std::string_view text);  ///< str.capitalize

struct Sides {
  bool left = true, right = true;
};
/// Removes white space at the ends.
std::string_view strip(std::string_view text, Sides sides = {});
/// Removes characters of `set` at the ends.
std::string_view strip(std::string_view text, std::string_view set, Sides sides = {});
/// str.splitlines: splits at Python's line ends and removes them; no empty line after the last one.
std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace titan::jinja
