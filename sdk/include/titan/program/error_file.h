// The error file in which a rank reports its error to its launcher. Written by the program when it
// fails, read by titan launch and by torchrun.
#pragma once

#include <string>

#include <titan/export.h>

namespace titan {

/// Writes `message` and, on further lines, `context` ("step 12, rank 1") as JSON to
/// TORCHELASTIC_ERROR_FILE, creating its folder. Does nothing without that variable and after the
/// first error of the process. Never throws, so that it cannot hide the first error.
TITAN_API void write_error_file(const std::string& message, const std::string& context);

/// The message in an error file; empty if there is none or it cannot be read.
TITAN_API std::string read_error_file(const std::string& path);

}  // namespace titan
