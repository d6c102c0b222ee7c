// Log lines of a run. No fmt, no spdlog in this header: the implementation hides them, so that a
// file which also sees torch's own copy of fmt stays safe.
#pragma once

#include <string_view>

#include <titan/export.h>

namespace titan::log {

/// One line each to standard error, with time and, in a run of several ranks, the rank.
/// Thread-safe.
TITAN_API void info(std::string_view message);
TITAN_API void warn(std::string_view message);
TITAN_API void error(std::string_view message);

/// While one lives, `info` and `warn` are dropped, whichever thread says it: a dry run does not
/// say again what the run says.
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
