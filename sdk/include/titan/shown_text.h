// Makes text from outside (names and values in files, file names, replies of servers) safe to show.
// Used by code that writes to a terminal or a log, and by messages that quote names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>

namespace titan {

/// `text` on one line, for messages. These are written as escapes:
/// - control characters including DEL: \x1b, and from U+0080 on \u009b
/// - invisible characters: format characters, blanks other than ' ', fillers, byte order marks,
///   tags, variation selectors and joiners (except inside emoji), private and reserved characters:
///   \u200b, \U000e0041
/// - characters that change the direction of text or end a line: \u202e, \u2028
/// - bytes that are not UTF-8: \xff
/// All else is unchanged, including backslashes, so text that is already escaped stays the same.
/// After `most` bytes `text` is truncated and "..." appended.
TITAN_API std::string printable(std::string_view text, size_t most = 200);
/// The same in single quotes, as errors show a name.
TITAN_API std::string in_quotes(std::string_view text, size_t most = 200);

/// A text of several lines; line ends and tabs are kept.
TITAN_API std::string printable_lines(std::string_view text);
/// The same for a message. Continuation lines that do not start with a blank are indented, so that
/// a name with a line end in it cannot pass for a separate message.
TITAN_API std::string printable_message(std::string_view text);
/// Writes the same characters in JSON as \uXXXX: the JSON stays valid and keeps its meaning.
TITAN_API std::string printable_json(std::string_view json);

/// The characters of `text`, each as `printable` shows it, except that tabs are kept. Used to place
/// a caret below the text. A byte that is not UTF-8 counts as a character.
TITAN_API std::vector<std::string> printable_characters(std::string_view text);
/// The number of terminal columns of a printable text.
TITAN_API size_t columns_of(std::string_view printable);

/// "; it looks like UTF-16: save it as UTF-8" if the bytes do, else empty. For errors about bytes
/// that are not the expected text.
TITAN_API std::string utf16_hint(std::string_view bytes);

}  // namespace titan
