// Device @FULL_NAME@. As generated, it is the CPU, with a peak that an option gives.
// Select it with [device] name = "@FULL_NAME@".
#include <memory>
#include <optional>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include <titan/device.h>
#include <titan/error.h>
#include <titan/plugin.h>

namespace {

struct @CLASS@Options {
  std::optional<double> peak_flops;  // FLOP/s in float32; unset: unknown, and no MFU is printed
};

class @CLASS@ final : public titan::Device {
 public:
  @CLASS@(const @CLASS@Options& options, titan::DeviceContext) : options_(options) {}

  c10::Device device() const override { return c10::kCPU; }
  std::string description() const override { return "@FULL_NAME@"; }
  titan::MemoryStats memory() const override {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return {.peak = int64_t{usage.ru_maxrss} * 1024,
            .total = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE)};
  }
  void reset_peak_memory() override {}  // the kernel keeps the peak of the whole process
  std::optional<double> peak_flops(c10::ScalarType dtype) const override {
    return dtype == c10::ScalarType::Float ? options_.peak_flops : std::nullopt;
  }
  void synchronize() override {}  // on the CPU, a call has finished when it returns
  /// Called once per group when a run has several ranks. Return a Backend over your transport (titan/dist/group.h).
  std::shared_ptr<titan::dist::Backend> connect(const titan::dist::Endpoint& endpoint) override {
    titan::fail(titan::ErrorKind::config, "device @FULL_NAME@ has no transport for the ", endpoint.size,
                " ranks of group '", endpoint.name, "'; run it on one rank");
  }

 private:
  @CLASS@Options options_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "The CPU, with a configured peak.")
      .option("peak_flops", &@CLASS@Options::peak_flops, "Peak FLOP/s in float32").greater_than(0);
}
