// What NVIDIA publishes of the speed of its GPUs. Used by the cuda device for its peak.
#pragma once

#include <optional>
#include <string_view>

#include <c10/core/ScalarType.h>

namespace titan::cuda {

/// Peak FLOP/s of dense matrix products of `dtype` on the GPU that the driver calls `name`
/// ("NVIDIA H100 80GB HBM3"), at its full clock and power; fp32 without TF32. The figures are those
/// of the data sheets without sparsity, whole TFLOP/s for the large ones: the numbers that the
/// field computes its model FLOPs utilisation with. Absent for slices of a GPU (MIG) and for what
/// is not in the table.
std::optional<double> gpu_peak_flops(std::string_view name, c10::ScalarType dtype);

}  // namespace titan::cuda
