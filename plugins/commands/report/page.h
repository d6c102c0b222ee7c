// Builds the page of titan report: one self-contained HTML file.
#pragma once

#include <string>

#include <titan/value.h>

namespace titan::commands {

/// HTML with the style and the scripts of page/, and `data` (page_data.h) as JSON in which no tag
/// can begin or end.
std::string to_page(const Value& data);

}  // namespace titan::commands
