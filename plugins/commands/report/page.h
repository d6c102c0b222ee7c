// The page of titan report: one file that needs nothing else.
#pragma once

#include <string>

#include <titan/value.h>

namespace titan::commands {

/// HTML with the style and the scripts of page/ in it, and `data` (page_data.h) as JSON in which no
/// tag can begin or end.
std::string to_page(const Value& data);

}  // namespace titan::commands
