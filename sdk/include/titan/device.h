// Plugin kind `device`: the hardware that holds the tensors, its memory, peak speed and
// communication.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <titan/dist/endpoint.h>
#include <titan/dist/group.h>
#include <titan/export.h>

namespace titan {

struct DeviceContext {
  int local_rank = 0;          ///< index among this machine's devices
  bool deterministic = false;  ///< [debug] deterministic: results that do not vary between runs
};

/// Memory of the device that this process uses, in bytes.
struct MemoryStats {
  int64_t peak = 0;   ///< highest use since the last reset_peak_memory
  int64_t total = 0;  ///< capacity of the device

  /// Only devices with a caching allocator report it.
  struct Reserved {
    int64_t peak = 0;         ///< highest since the last reset_peak_memory
    int64_t num_retries = 0;  ///< allocations that were retried after freeing cached memory
    int64_t num_ooms = 0;     ///< failed allocations
  };
  std::optional<Reserved> reserved = {};
};

/// Called on the trainer thread only, except for synchronize(), which other threads may call, too.
class TITAN_API Device {
 public:
  static constexpr const char* kKind = "device";
  using Interface = Device;
  using Context = DeviceContext;

  virtual ~Device();

  virtual c10::Device device() const = 0;
  /// Model name of the hardware, for the log.
  virtual std::string description() const = 0;
  virtual MemoryStats memory() const = 0;
  virtual void reset_peak_memory() = 0;
  /// Peak FLOP/s for matrix products of `dtype`; absent if unknown, never a guess.
  virtual std::optional<double> peak_flops(c10::ScalarType dtype) const = 0;
  /// Waits until all issued work is done.
  virtual void synchronize() = 0;
  /// Connects a group of ranks with tensors on this device (gloo, NCCL). Blocks until all ranks
  /// have connected; throws a distributed Error after the endpoint's timeout.
  virtual std::shared_ptr<dist::Backend> connect(const dist::Endpoint& endpoint) = 0;
};

}  // namespace titan
