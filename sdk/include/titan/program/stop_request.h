// A request of the program itself to stop a run, as a signal does (titan/program/stop_signals.h).
#pragma once

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(stop_request);

namespace titan {

/// Exit code of a run that stopped because a rank computes wrong results. Megatron-LM uses the same
/// number for a failed validation of results.
inline constexpr int kExitFaultyDevice = 17;

/// StopSignals::received() after request_stop is this plus the exit code.
inline constexpr int kStopRequest = 256;

/// [any thread] The run stops after the current step, saves a checkpoint if checkpoints are
/// enabled, and ends with `exit_code`, from 1 to 127. All ranks stop after the same step, even if
/// one of them requests it. A run that has no further step ends as usual. After a signal it does
/// nothing.
TITAN_API void request_stop(int exit_code);

}  // namespace titan
