// Text from outside (names and values out of files, file names, what a server answers) as people
// are shown it. Used by whatever writes to a terminal or a log, and by whoever quotes a name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>

namespace titan {

/// `text` on one line, for messages. Written as escapes are
/// - control characters, DEL among them: \x1b, and from U+0080 on \u009b
/// - what is not seen: format characters, blanks other than ' ', fillers, byte order marks, tags,
///   variation selectors and joiners (but not those inside of emoji), private and reserved
///   characters: \u200b, \U000e0041
/// - what turns the direction of text and what ends a line: \u202e, \u2028
/// - bytes that are not UTF-8: \xff
/// All else stays as it is, backslashes as well: what was escaped before stays as it is. Behind
/// `most` bytes of `text` it is cut, and "..." put there.
TITAN_API std::string printable(std::string_view text, size_t most = 200);
/// The same in single quotes: how errors show a name.
TITAN_API std::string in_quotes(std::string_view text, size_t most = 200);

/// A text of several lines, whole: line ends and tabs stay.
TITAN_API std::string printable_lines(std::string_view text);
/// The same for a message: a line that does not start with a blank is moved in behind the first
/// one, so that no name with a line end in it can pass for a message of its own.
TITAN_API std::string printable_message(std::string_view text);
/// JSON with the same characters as \uXXXX: it stays JSON and means the same.
TITAN_API std::string printable_json(std::string_view json);

/// `text` character by character, each as `printable` shows it, but tabs as they are: what a caret
/// below the text is placed with. A byte that is not UTF-8 counts as a character.
TITAN_API std::vector<std::string> printable_characters(std::string_view text);
/// The columns of a terminal that a printable text takes.
TITAN_API size_t columns_of(std::string_view printable);

/// "; it looks like UTF-16: save it as UTF-8" for bytes that do, else empty: what to say when
/// bytes turn out not to be the text that was expected.
TITAN_API std::string utf16_hint(std::string_view bytes);

}  // namespace titan
