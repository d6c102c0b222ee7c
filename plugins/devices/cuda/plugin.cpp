// An NVIDIA GPU as the training device: selects the GPU, reports its memory and connects ranks over
// NCCL. Loaded only when it is selected, because only this library needs LibTorch's CUDA libraries.
#include <cstdlib>
#include <string>

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/cuda/memory_snapshot.h>

#include <titan/device.h>
#include <titan/device_graphs.h>
#include <titan/error.h>
#include <titan/host_collectives.h>
#include <titan/memory_history.h>
#include <titan/plugin.h>

#include "gpu_peaks.h"
#include "graph.h"
#include "nccl_backend.h"

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

struct CudaOptions {
  bool expandable_segments = true;  // memory of one stream is one growing address range
};

/// Called before the first allocation. The allocator's environment variables take precedence, which
/// LibTorch has read already.
void set_up_allocator(const CudaOptions& options) {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
    if (std::getenv(name)) return;
  c10::CachingAllocator::setAllocatorSettings(
      options.expandable_segments ? "expandable_segments:True" : "expandable_segments:False");
}

/// "CUDA_VISIBLE_DEVICES is '0,1'", or a text that says it is not set.
std::string visible_devices() {
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  return text ? "CUDA_VISIBLE_DEVICES is '" + std::string(text) + "'"
              : "CUDA_VISIBLE_DEVICES is not set";
}

/// Number of GPUs that this process may use; throws a config Error with the reason if it is 0.
int count_devices() {
  int count = 0;
  std::string why;
  try {
    count = c10::cuda::device_count_ensure_non_zero();
  } catch (const c10::Error& e) {
    why = e.what_without_backtrace();
    why = why.substr(0, why.find('\n'));
  }
  TITAN_CHECK(count > 0, config, "no CUDA device: ", why.substr(0, why.find(". Please")), " (",
              visible_devices(), "); to train on the CPU set device.name = \"cpu\"");
  return count;
}

c10::Device choose_device(int local_rank) {
  const int count = count_devices();
  // some launchers show each rank only its own GPU and still set the local rank
  const int index = count == 1 ? 0 : local_rank;
  TITAN_CHECK(index >= 0 && index < count, config, "local rank ", local_rank,
              " has no CUDA device of its own: ", count, " are visible here (", visible_devices(),
              "); start at most ", count, " ranks on this machine");
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

class Cuda final : public titan::Device,
                   public titan::MemoryHistory,
                   public titan::HostCollectives,
                   public titan::DeviceGraphs {
 public:
  Cuda(const CudaOptions& options, const titan::DeviceContext& context) {
    // read by cuBLAS when it starts; without it, sums of products may differ between runs
    if (context.deterministic) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
    device_ = choose_device(context.local_rank);
    TITAN_ASSERT(at::hasCUDA(),
                 "LibTorch was asked for CUDA before the plugin was loaded, and has cached that "
                 "there is none");
    set_up_allocator(options);
    at::globalContext().lazyInitDevice(c10::kCUDA);
    c10::cuda::set_device(device_.index());
    reset_peak_memory();
  }

  c10::Device device() const override { return device_; }

  std::string description() const override {
    const cudaDeviceProp& gpu = properties();
    const int64_t gib = (static_cast<int64_t>(gpu.totalGlobalMem) + (1 << 29)) >> 30;
    return std::string(gpu.name) + ", " + std::to_string(gib) + " GiB, compute capability " +
           std::to_string(gpu.major) + "." + std::to_string(gpu.minor);
  }

  titan::MemoryStats memory() const override {
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto stats = allocator::getDeviceStats(device_.index());
    return {.peak = stats.active_bytes[kAll].peak,
            .total = static_cast<int64_t>(properties().totalGlobalMem),
            .reserved = titan::MemoryStats::Reserved{.peak = stats.reserved_bytes[kAll].peak,
                                                     .num_retries = stats.num_alloc_retries,
                                                     .num_ooms = stats.num_ooms}};
  }
  void reset_peak_memory() override { allocator::resetPeakStats(device_.index()); }

  std::optional<double> peak_flops(c10::ScalarType dtype) const override {
    return titan::cuda::gpu_peak_flops(properties().name, dtype);
  }

  void synchronize() override { c10::cuda::device_synchronize(); }

  /// LibTorch keeps its own record, including blocks that streams still use. `listener` receives
  /// the events that the table of the peak needs.
  void start_history(titan::MemoryListener& listener, int64_t max_entries) override {
    torch::cuda::_record_memory_history("all", "all", "python", static_cast<size_t>(max_entries));
    allocator::attachAllocatorTraceTracker(
        [&listener, own = device_.index()](const auto& entry) { tell(listener, entry, own); });
  }
  void set_memory_label(const std::string& label) override { allocator::setUserMetadata(label); }
  std::string memory_snapshot() override { return torch::cuda::_memory_snapshot_pickled(); }

  std::unique_ptr<titan::DeviceGraph> capture(const std::function<void()>& work) override {
    return titan::cuda::capture_graph(work, device_);
  }

  std::shared_ptr<titan::dist::Backend> connect(const titan::dist::Endpoint& endpoint) override {
    return titan::cuda::connect_nccl(endpoint, device_);
  }

 private:
  /// Called under the allocator's lock.
  static void tell(titan::MemoryListener& listener,
                   const c10::CachingDeviceAllocator::TraceEntry& entry, c10::DeviceIndex own) {
    using Entry = c10::CachingDeviceAllocator::TraceEntry;
    if (entry.device_ != own) return;
    const auto bytes = static_cast<int64_t>(entry.size_);
    if (entry.action_ == Entry::ALLOC) listener.taken(entry.addr_, bytes);
    if (entry.action_ == Entry::FREE_COMPLETED) listener.given_back(entry.addr_);
    if (entry.action_ == Entry::OOM) listener.refused(bytes);
  }

  const cudaDeviceProp& properties() const {
    return *at::cuda::getDeviceProperties(device_.index());
  }

  c10::Device device_{c10::kCUDA, 0};
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Cuda>("cuda", "An NVIDIA GPU: the one whose index is this rank's local rank.")
      .option("expandable_segments", &CudaOptions::expandable_segments,
              "Memory in address ranges that grow, instead of blocks that cannot be merged; "
              "PYTORCH_ALLOC_CONF takes precedence");
}
