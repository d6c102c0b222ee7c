// titan-probe gemm DEVICE DTYPE: prints the machine's current GEMM speed as JSON. It is a separate
// program because titan bench does not load torch and titan should not grow for measurements.
#include <dlfcn.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <c10/core/ScalarType.h>

#include <titan/error.h>
#include <titan/program/clock.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>
#include <titan/value.h>

namespace {

using titan::monotonic_seconds;

/// "float32", as c10::getDtypeNames calls it.
at::ScalarType dtype_named(const std::string& name) {
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf})
    if (c10::getDtypeNames(type).first == name) return type;
  titan::fail(titan::ErrorKind::config, "there is no dtype '", name,
              "'; try float64, float32, bfloat16 or float16");
}

/// LibTorch's GPU library registers GPUs when it is opened. Measurements on CPUs do not need it.
void open_gpu_library() {
  TITAN_CHECK(::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL), io,
              "cannot open LibTorch's GPU library: ", ::dlerror());
}

/// FLOP/s of the fastest of several products of square matrices, measured for at least half a
/// second.
titan::Value fastest_product(const at::Device& device, at::ScalarType dtype) {
  constexpr double kSeconds = 0.5;
  const int64_t size = device.is_cpu() ? 1024 : 8192;
  const auto wait = [&] {
    if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
  };
  const at::Tensor a = at::randn({size, size}, at::device(device).dtype(dtype));
  const at::Tensor b = at::randn({size, size}, at::device(device).dtype(dtype));
  at::Tensor product = at::mm(a, b);
  wait();
  double best = 1e30;
  int64_t times = 0;
  for (const double begin = monotonic_seconds(); monotonic_seconds() < begin + kSeconds; ++times) {
    const double start = monotonic_seconds();
    at::mm_out(product, a, b);
    wait();
    best = std::min(best, monotonic_seconds() - start);
  }
  const auto n = static_cast<double>(size);
  return titan::Value::map({{"device", device.str()},
                            {"dtype", std::string(c10::getDtypeNames(dtype).first)},
                            {"size", size},
                            {"products", times},
                            {"flops", 2 * n * n * n / best}});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    TITAN_CHECK(words.size() == 3 && words[0] == "gemm", config,
                "usage: titan-probe gemm DEVICE DTYPE");
    const at::Device device(words[1]);
    if (!device.is_cpu()) open_gpu_library();
    const titan::Value found = fastest_product(device, dtype_named(words[2]));
    titan::print_json(titan::to_json(found) + "\n");
    return titan::kExitDone;
  } catch (const titan::Error& e) {
    titan::print_error(e.what());
    return e.kind() == titan::ErrorKind::config ? titan::kExitConfigError
                                                : titan::kExitRuntimeError;
  } catch (const std::exception& e) {
    titan::print_error(e.what());
    return titan::kExitRuntimeError;
  }
}
