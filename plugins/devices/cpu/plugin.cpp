// The CPU of this machine as a training device. Reports the memory of the process as the kernel
// counts it, or the memory of its tensors.
#include <fstream>
#include <string>

#include <ATen/Parallel.h>

#include <titan/device.h>
#include <titan/memory_history.h>
#include <titan/plugin.h>

#include "counting_allocator.h"
#include "host_memory.h"
#include "transport.h"

namespace {

struct CpuOptions {
  int64_t num_threads = 0;     // of each operation; 0 = OMP_NUM_THREADS or all cores
  bool count_tensors = false;  // report the memory of tensors instead of the process's
  titan::cpu::Transport transport = titan::cpu::Transport::automatic;  // between ranks
  bool keep_memory = true;  // of freed tensors, for the next ones
};

/// The number after `key` in a file of "key: 123 kB" lines, in bytes; 0 if the key is missing.
int64_t read_kib(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(key + ":", 0) == 0) return std::stoll(line.substr(key.size() + 1)) * 1024;
  return 0;
}

class Cpu final : public titan::Device, public titan::MemoryHistory {
 public:
  Cpu(const CpuOptions& options, titan::DeviceContext)
      : counts_tensors_(options.count_tensors), connector_(options.transport) {
    if (options.keep_memory) titan::cpu::keep_memory();
    if (counts_tensors_) titan::cpu::TensorCount::start();
    if (options.num_threads > 0) at::set_num_threads(static_cast<int>(options.num_threads));
  }

  c10::Device device() const override { return c10::kCPU; }
  std::string description() const override {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
      if (line.rfind("model name", 0) == 0)
        return line.substr(line.find(':') + 2) + ", " + std::to_string(at::get_num_threads()) +
               " threads";
    return "CPU, " + std::to_string(at::get_num_threads()) + " threads";
  }
  titan::MemoryStats memory() const override {
    return {.peak = counts_tensors_ ? titan::cpu::TensorCount::peak()
                                    : read_kib("/proc/self/status", "VmHWM"),
            .total = read_kib("/proc/meminfo", "MemTotal")};
  }
  void reset_peak_memory() override {
    titan::cpu::reset_kept_peak();
    if (counts_tensors_) {
      titan::cpu::TensorCount::reset_peak();
      return;
    }
    std::ofstream("/proc/self/clear_refs")
        << "5";  // if not permitted, the peak stays that since the process started
  }
  std::optional<double> peak_flops(c10::ScalarType) const override { return std::nullopt; }
  void synchronize() override {}
  void start_history(titan::MemoryListener& listener, int64_t) override {
    if (!counts_tensors_) titan::cpu::TensorCount::start();
    titan::cpu::TensorCount::tell(listener);
  }
  std::shared_ptr<titan::dist::Backend> connect(const titan::dist::Endpoint& endpoint) override {
    return connector_.connect(endpoint);
  }

 private:
  bool counts_tensors_;
  titan::cpu::Connector connector_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Cpu>("cpu", "This machine's CPU.")
      .option("num_threads", &CpuOptions::num_threads,
              "Threads of each operation; 0 = OMP_NUM_THREADS or all cores")
      .at_least(0)
      .option("count_tensors", &CpuOptions::count_tensors,
              "Report the memory of tensors, as GPUs do, instead of that of the whole process")
      .option("transport", &CpuOptions::transport,
              "How ranks communicate: shared_memory, gloo, or auto: shared memory where possible",
              {{"auto", titan::cpu::Transport::automatic},
               {"gloo", titan::cpu::Transport::gloo},
               {"shared_memory", titan::cpu::Transport::shared_memory}})
      .option("keep_memory", &CpuOptions::keep_memory,
              "Keep the memory of freed tensors for the next ones instead of giving it back to the "
              "system; at most 3 % more than the peak in use");
}
