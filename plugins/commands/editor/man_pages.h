// Manual pages in roff: titan(1), a page for each command, and titan-config(5) for the keys. Used
// by `titan __man`, which the installation calls.
#pragma once

#include <map>
#include <string>

#include <titan/value.h>

namespace titan::commands {

/// The text of each page by its file below share/man: "man1/titan-bench.1". `declared`: see
/// declared.h; `date`: "2026-11-28".
std::map<std::string, std::string> man_pages(const Value& declared, const std::string& date);

}  // namespace titan::commands
