// Writes a resolved configuration as TOML. Used for the copy in the run's folder and by --dry-run.
#pragma once

#include <string>

#include <titan/value.h>

namespace titan::core {

/// `resolved`: a map of sections (JobConfig::resolved). The text reads back to the same values, and
/// resolves to the same text. An unset value (null) is the word "None". Throws a config Error for a
/// number that TOML has no text for.
std::string to_toml(const Value& resolved);

}  // namespace titan::core
