// Text from files as JSON. Used by everything that writes names of tensors; how people are shown
// them is in titan/shown_text.h.
#pragma once

#include <string>

#include <titan/shown_text.h>

#include <titan/export.h>

namespace titan {

/// `text` as a JSON string with its quotes. `ascii`: other characters as \uXXXX. Throws a data
/// Error for text that is not UTF-8.
enum class Escapes { needed, ascii };
TITAN_API void append_json_string(std::string& out, const std::string& text,
                                  Escapes escapes = Escapes::needed);

}  // namespace titan
