// Published peak FLOP/s of NVIDIA GPUs. Used by the cuda device.
#pragma once

#include <optional>
#include <string_view>

#include <c10/core/ScalarType.h>

namespace titan::cuda {

/// Peak FLOP/s of dense matrix products of `dtype` on the GPU with the driver's name `name`
/// ("NVIDIA H100 80GB HBM3"), at full clock and power; fp32 without TF32. The figures are those of
/// the data sheets without sparsity, whole TFLOP/s for the large ones, as commonly used for model
/// FLOPs utilisation. Absent for slices of a GPU (MIG) and for GPUs that are not in the table.
std::optional<double> gpu_peak_flops(std::string_view name, c10::ScalarType dtype);

}  // namespace titan::cuda
