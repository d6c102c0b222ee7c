// Where the time of a run went, as text for a terminal. Used by plugin.cpp.
#pragma once

#include <string>

#include "run_folder.h"

namespace titan::commands {

/// Goodput, the causes of lost time, waits within kept steps, and each failure with rank, step,
/// message and log. Empty if the run has no history.
std::string time_text(const RunFolder& run);

}  // namespace titan::commands
