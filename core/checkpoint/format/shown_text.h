// Text from files as people are shown it, and as JSON. Used by everything in this folder that names
// tensors.
#pragma once

#include <string>
#include <string_view>

namespace titan::core {

/// A name from a file as people are shown it: without control characters, and cut when it is long.
std::string printable(std::string_view name);
/// The same in single quotes, as errors show it.
std::string in_quotes(std::string_view name);
/// `text` as a JSON string with its quotes. `ascii`: other characters as \uXXXX. Throws a data
/// Error for text that is not UTF-8.
enum class Escapes { needed, ascii };
void append_json_string(std::string& out, const std::string& text,
                        Escapes escapes = Escapes::needed);

}  // namespace titan::core
