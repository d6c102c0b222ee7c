// How fast the machine multiplies matrices right now: what a run's speed is seen beside.
#pragma once

#include <optional>

#include "bench_run.h"

namespace titan::commands {

/// FLOP/s of products in the type that the run computed in, by titan-probe, of as many processes
/// and threads at once as the run had. None where the run did not tell its type. Throws an io Error
/// when the program fails or is not there.
std::optional<double> measured_gemm(const BenchFigures& figures, const SignalInbox& signals);

}  // namespace titan::commands
