// Devices with one defect each, for the conformance kit. Each is written from the one sentence of
// its test.
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/silu.h>
#include <titan/device.h>
#include <titan/error.h>
#include <titan/plugin.h>
#include <torch/library.h>

namespace {

/// Correct: the CPU, for one rank.
class Cpu : public titan::Device {
 public:
  explicit Cpu(titan::DeviceContext) {}
  c10::Device device() const override { return c10::kCPU; }
  std::string description() const override { return "a processor"; }
  titan::MemoryStats memory() const override {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return {.peak = int64_t{usage.ru_maxrss} * 1024,
            .total = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE)};
  }
  void reset_peak_memory() override {}
  std::optional<double> peak_flops(c10::ScalarType) const override { return std::nullopt; }
  void synchronize() override {}
  std::shared_ptr<titan::dist::Backend> connect(const titan::dist::Endpoint& endpoint) override {
    titan::fail(titan::ErrorKind::config, "this device has no transport for the ", endpoint.size,
                " ranks of group '", endpoint.name, "'; run it on one rank");
  }
};

class Empty final : public titan::Device {
 public:
  explicit Empty(titan::DeviceContext) {}
  c10::Device device() const override { return c10::kCPU; }
  std::string description() const override { return {}; }
  titan::MemoryStats memory() const override { return {}; }
  void reset_peak_memory() override {}
  std::optional<double> peak_flops(c10::ScalarType) const override { return {}; }
  void synchronize() override {}
  std::shared_ptr<titan::dist::Backend> connect(const titan::dist::Endpoint&) override {
    return {};
  }
};

/// Cannot start, and does not say that the machine has no such device.
class Defaults final : public Cpu {
 public:
  explicit Defaults(titan::DeviceContext context) : Cpu(context) {
    titan::fail(titan::ErrorKind::internal, "the device did not answer");
  }
};

/// Says that the machine has no such device.
class Absent final : public Cpu {
 public:
  explicit Absent(titan::DeviceContext context) : Cpu(context) {
    titan::fail(titan::ErrorKind::config, "this machine has no such device; use another machine");
  }
};

/// Has no description.
class Describes final : public Cpu {
 public:
  using Cpu::Cpu;
  std::string description() const override { return ""; }
};

/// Another device with each call.
class DescribesChanging final : public Cpu {
 public:
  using Cpu::Cpu;
  c10::Device device() const override { return ++calls_ % 2 ? c10::kCPU : c10::kMeta; }

 private:
  mutable int calls_ = 0;
};

/// Has no total.
class Memory final : public Cpu {
 public:
  using Cpu::Cpu;
  titan::MemoryStats memory() const override { return {.peak = Cpu::memory().peak}; }
};

/// Has a negative peak.
class MemoryNegative final : public Cpu {
 public:
  using Cpu::Cpu;
  titan::MemoryStats memory() const override { return {.peak = -1, .total = Cpu::memory().total}; }
};

/// Its peak in float16 is 0.
class PeakFlops final : public Cpu {
 public:
  using Cpu::Cpu;
  std::optional<double> peak_flops(c10::ScalarType dtype) const override {
    return dtype == c10::ScalarType::Half ? std::optional<double>(0) : std::nullopt;
  }
};

/// Its peak in float64 is no number.
class PeakFlopsNan final : public Cpu {
 public:
  using Cpu::Cpu;
  std::optional<double> peak_flops(c10::ScalarType dtype) const override {
    return dtype == c10::ScalarType::Double ? std::optional<double>(NAN) : std::nullopt;
  }
};

/// Its tensors have no values.
class Computes final : public Cpu {
 public:
  using Cpu::Cpu;
  c10::Device device() const override { return c10::kMeta; }
};

at::Tensor half_gate(const at::Tensor& gate, const at::Tensor& up) {
  return at::silu(gate) * up * 0.5;
}

/// Its gate of feed-forward layers is half as large.
class Trains final : public Cpu {
 public:
  explicit Trains(titan::DeviceContext context) : Cpu(context) {
    static torch::Library library(torch::Library::IMPL, "titan", c10::DispatchKey::CPU, __FILE__,
                                  __LINE__);
    library.impl("swiglu_forward", TORCH_FN(half_gate));
  }
};

at::Tensor noisy_gate(const at::Tensor& gate, const at::Tensor& up) {
  static std::mt19937 random{std::random_device{}()};
  return at::silu(gate) * up * (1 + 1e-4 * std::uniform_real_distribution<double>()(random));
}

/// Its gate of feed-forward layers has noise.
class SameBits final : public Cpu {
 public:
  explicit SameBits(titan::DeviceContext context) : Cpu(context) {
    static torch::Library library(torch::Library::IMPL, "titan", c10::DispatchKey::CPU, __FILE__,
                                  __LINE__);
    library.impl("swiglu_forward", TORCH_FN(noisy_gate));
  }
};

/// Its ranks do not communicate.
class Connects final : public Cpu {
 public:
  using Cpu::Cpu;
  std::shared_ptr<titan::dist::Backend> connect(const titan::dist::Endpoint& endpoint) override {
    return titan::dist::make_fake_backend(endpoint.rank, endpoint.size);
  }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<Cpu>("wrong/right", "Correct.");
  plugin.add<Absent>("wrong/right.absent", "Is not in this machine.");
  plugin.add<Defaults>("wrong/defaults", "Cannot start.");
  plugin.add<Describes>("wrong/describes", "Has no description.");
  plugin.add<DescribesChanging>("wrong/describes.changing", "Changes its device.");
  plugin.add<Memory>("wrong/memory", "Has no total of memory.");
  plugin.add<MemoryNegative>("wrong/memory.negative", "Has a negative peak of memory.");
  plugin.add<PeakFlops>("wrong/peak_flops", "Has a peak of 0 FLOP/s.");
  plugin.add<PeakFlopsNan>("wrong/peak_flops.nan", "Has a peak that is no number.");
  plugin.add<Computes>("wrong/computes", "Has tensors without values.");
  plugin.add<Trains>("wrong/trains", "Computes a wrong gate.");
  plugin.add<SameBits>("wrong/same_bits", "Computes a gate with noise.");
  plugin.add<Connects>("wrong/connects", "Connects no ranks.");
}
