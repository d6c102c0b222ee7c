// Log lines of a run. The implementation hides fmt and spdlog, so that they cannot clash with
// torch's own copy of fmt in a file that includes both.
#pragma once

#include <string_view>

#include <titan/export.h>

namespace titan::log {

/// Each call writes one line to standard error, with the time and, in a run of several ranks, the
/// rank. Thread-safe.
TITAN_API void info(std::string_view message);
TITAN_API void warn(std::string_view message);
TITAN_API void error(std::string_view message);

/// While an instance exists, `info` and `warn` of all threads are dropped, so that a dry run does
/// not repeat messages of the run.
class TITAN_API Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
};

/// Prefix of every line from now on, for example "[rank3]"; empty = none. Called once by the
/// launcher's code.
TITAN_API void set_prefix(std::string_view prefix);

}  // namespace titan::log
