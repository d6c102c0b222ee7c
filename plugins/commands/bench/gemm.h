// Measures the machine's current GEMM speed, as a reference for the speed of a run. Used by titan
// bench.
#pragma once

#include <optional>

#include "bench_run.h"

namespace titan::commands {

/// FLOP/s of GEMMs in the compute dtype of the run, measured by titan-probe with as many processes
/// and threads at once as the run had. None when the run did not report its dtype. Throws an io
/// Error when the program fails or is missing.
std::optional<double> measured_gemm(const BenchFigures& figures, const SignalInbox& signals);

}  // namespace titan::commands
