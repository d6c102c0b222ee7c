// Writes text from files as JSON strings. Used by all code that writes names of tensors. To show
// such text to users, see titan/shown_text.h.
#pragma once

#include <string>

#include <titan/shown_text.h>

#include <titan/export.h>

namespace titan {

/// Appends `text` as a JSON string with its quotes. `ascii`: writes non-ASCII characters as \uXXXX.
/// Throws a data Error for text that is not UTF-8.
enum class Escapes { needed, ascii };
TITAN_API void append_json_string(std::string& out, const std::string& text,
                                  Escapes escapes = Escapes::needed);

}  // namespace titan
