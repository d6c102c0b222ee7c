// Text that has to be UTF-8 whatever its bytes are. Used where messages become JSON.
#pragma once

#include <string>
#include <string_view>

#include <titan/export.h>

namespace titan {

/// `text` with a '?' for each byte that is no part of a well-formed character.
TITAN_API std::string as_utf8(std::string_view text);

}  // namespace titan
