// The files of page/, which the build embeds into the plugin (page_parts.cpp.in). Used by page.cpp.
#pragma once

#include <string_view>

namespace titan::commands {

extern const std::string_view kPageHtml, kPageStyle, kPageScript;

}  // namespace titan::commands
