// The error file by which a rank tells its launcher what went wrong. Written by the program when it
// fails, read by titan launch and by torchrun.
#pragma once

#include <string>

#include <titan/export.h>

namespace titan {

/// Writes `message` and, below it, `context` ("step 12, rank 1") as JSON to
/// TORCHELASTIC_ERROR_FILE, making its folder. Does nothing without that variable and after the
/// first error of the process. Never throws: an error on the way out must not hide the first one.
TITAN_API void write_error_file(const std::string& message, const std::string& context);

/// The message in an error file; empty when there is none or it cannot be read.
TITAN_API std::string read_error_file(const std::string& path);

}  // namespace titan
