// Options of [parallelism.fsdp], and the settings of one run that follow from them.
#pragma once

#include <ATen/core/Tensor.h>
#include <titan/device.h>
#include <titan/dist/mesh.h>

namespace titan::fsdp {

/// Whether a unit's whole parameters are freed between its forward and its backward.
enum class Reshard {
  all_but_last,  ///< all except the last unit, whose backward follows at once
  always,        ///< least memory
  never          ///< one gather per step instead of two; for pipelines, whose microbatches share it
};

enum class Dtype { as_stored, float16, bfloat16, float32, float64 };

struct FsdpOptions {
  Reshard reshard_after_forward = Reshard::all_but_last;
  Dtype param_dtype = Dtype::as_stored;   // of gathered parameters and of the computation
  Dtype reduce_dtype = Dtype::as_stored;  // of sums of gradients over ranks
  bool cpu_offload = false;               // keep shards and reduced gradients in host memory
  bool sum_each_microbatch = false;       // reduce after each: less memory, more traffic
};

/// One run's settings: the options resolved to dtypes and devices.
struct Settings {
  Reshard reshard = Reshard::all_but_last;
  bool sum_each_microbatch = false;
  bool cpu_offload = false;
  at::ScalarType stored_dtype = at::kFloat;  ///< of shards and of their gradients
  at::ScalarType param_dtype = at::kFloat;
  at::ScalarType reduce_dtype = at::kFloat;
  c10::Device device = c10::kCPU;  ///< where the model computes
  Device* runtime = nullptr;       ///< of `device`
  dist::Mesh mesh;

  /// Whether shards and their gradients are in host memory. A dry run keeps them on meta.
  bool is_offloaded() const { return cpu_offload && !device.is_meta(); }
  /// Without reduction over ranks, cast or offload there is nothing to do.
  bool change_nothing() const {
    return mesh.group("fsdp").size() == 1 && mesh.group("dp_replicate").size() == 1 &&
           param_dtype == stored_dtype && !is_offloaded();
  }
};

}  // namespace titan::fsdp
