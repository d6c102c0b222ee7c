#include "gpu_peaks.h"

namespace titan::cuda {
namespace {

/// TFLOP/s; 0 = the GPU has no such units, or no figure is published.
struct Peaks {
  std::string_view model;    // a word of the driver's name
  std::string_view variant;  // another required word; empty = none
  double fp64, fp32, fp16, bf16, fp8;
};

// The first matching row counts, so variants come before the plain model. fp64 is that of tensor
// cores if the GPU has them for fp64.
constexpr Peaks kTable[] = {
    {"B200", "", 0, 0, 2250, 2250, 4500},
    {"H200", "NVL", 60, 60, 835, 835, 1670},
    {"H200", "", 67, 67, 989, 989, 1979},
    {"GH200", "", 67, 67, 989, 989, 1979},
    {"H100", "NVL", 60, 60, 835, 835, 1670},
    {"H100", "PCIe", 51, 51, 756, 756, 1513},
    {"H100", "HBM3", 67, 67, 989, 989, 1979},
    {"H20", "", 1, 44, 148, 148, 296},
    {"A100", "", 19.5, 19.5, 312, 312, 0},
    {"A30", "", 10.3, 10.3, 165, 165, 0},
    {"A10", "", 0, 31.2, 125, 125, 0},
    {"A40", "", 0, 37.4, 149.7, 149.7, 0},
    {"L40S", "", 0, 91.6, 362, 362, 733},
    {"L4", "", 0, 30.3, 121, 121, 242.5},
    {"T4", "", 0, 8.1, 65, 0, 0},
    {"V100S", "PCIE", 8.2, 16.4, 130, 0, 0},
    {"V100", "SXM2", 7.8, 15.7, 125, 0, 0},
    {"V100", "PCIE", 7, 14, 112, 0, 0},
};

/// Whether `word` is a whole word of `name`, delimited by ' ', '-' or '_': "L4" is not in "NVIDIA
/// L40S".
bool has_word(std::string_view name, std::string_view word) {
  const auto ends_word = [&](size_t i) {
    return i >= name.size() || name[i] == ' ' || name[i] == '-' || name[i] == '_';
  };
  for (size_t at = name.find(word); at != name.npos; at = name.find(word, at + 1))
    if ((at == 0 || ends_word(at - 1)) && ends_word(at + word.size())) return true;
  return false;
}

double tflops(const Peaks& peaks, c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Double:
      return peaks.fp64;
    case c10::ScalarType::Float:
      return peaks.fp32;
    case c10::ScalarType::Half:
      return peaks.fp16;
    case c10::ScalarType::BFloat16:
      return peaks.bf16;
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e5m2:
      return peaks.fp8;
    default:
      return 0;
  }
}

}  // namespace

std::optional<double> gpu_peak_flops(std::string_view name, c10::ScalarType dtype) {
  if (has_word(name, "MIG")) return std::nullopt;  // a slice of a GPU under its name
  for (const Peaks& peaks : kTable) {
    if (!has_word(name, peaks.model)) continue;
    if (!peaks.variant.empty() && !has_word(name, peaks.variant)) continue;
    const double peak = tflops(peaks, dtype);
    if (peak == 0) return std::nullopt;
    return peak * 1e12;
  }
  return std::nullopt;
}

}  // namespace titan::cuda
