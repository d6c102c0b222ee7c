// Makes any bytes valid UTF-8. Used where messages become JSON.
#pragma once

#include <string>
#include <string_view>

#include <titan/export.h>

namespace titan {

/// `text` with a '?' for each byte that is not part of a well-formed character.
TITAN_API std::string as_utf8(std::string_view text);

}  // namespace titan
