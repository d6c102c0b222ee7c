// Plugin kind `device`: where tensors live and what is known about it.
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
  int local_rank = 0;          ///< which of this machine's devices
  bool deterministic = false;  ///< [debug] deterministic: results that do not vary between runs
};

/// Memory of the device that this process uses, in bytes.
struct MemoryStats {
  int64_t peak = 0;   ///< highest use since the last reset_peak_memory
  int64_t total = 0;  ///< what there is

  /// Of devices whose allocator keeps memory for later.
  struct Reserved {
    int64_t peak = 0;         ///< highest since the last reset_peak_memory
    int64_t num_retries = 0;  ///< allocations that came after what was kept had been given back
    int64_t num_ooms = 0;     ///< that failed
  };
  std::optional<Reserved> reserved = {};
};

/// Called on the trainer thread only.
class TITAN_API Device {
 public:
  static constexpr const char* kKind = "device";
  using Interface = Device;
  using Context = DeviceContext;

  virtual ~Device();

  virtual c10::Device device() const = 0;
  /// Its model name, for the log.
  virtual std::string description() const = 0;
  virtual MemoryStats memory() const = 0;
  virtual void reset_peak_memory() = 0;
  /// Peak FLOP/s for matrix products of `dtype`; absent when it is not known, never a guess.
  virtual std::optional<double> peak_flops(c10::ScalarType dtype) const = 0;
  /// Waits until everything that was issued is done.
  virtual void synchronize() = 0;
  /// Connects a group of ranks that hold tensors on this device: gloo, NCCL. Blocks until all are
  /// there or the endpoint's time is over (a distributed Error).
  virtual std::shared_ptr<dist::Backend> connect(const dist::Endpoint& endpoint) = 0;
};

}  // namespace titan
