// Mode `speed`: measures the device's peaks (copies, matrix products), then every operation of an
// 8B model's step relative to them. speed_products.cpp has the peaks and float8,
// speed_operations.cpp the rest.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/TensorOptions.h>

#include "stopwatch.h"

namespace titan::probe {

/// Sizes of a layer of an 8B model, or small ones for the CPU.
struct Sizes {
  int64_t tokens, dim, ffn, heads, kv_heads, width, words, gemm, copied, experts;
};

/// Bytes and FLOPs of a launch by its formula.
struct Work {
  double bytes = 0, flops = 0;
};

/// Computes each output's gradient for the differentiable inputs, from graphs made before.
using Forward = std::function<Tensors(const Tensors&)>;

class Speed {
 public:
  Speed(Device& device, const Options& options);
  bool run();

 private:
  struct Name {
    std::string operation, direction, shape;
    at::ScalarType type = at::kBFloat16;
  };
  struct Product {
    const char* layer;
    int64_t rows, in, out;
  };

  at::TensorOptions on_device() const { return at::TensorOptions().device(device_.device()); }
  Tensor normal(at::IntArrayRef shape, at::ScalarType type = at::kBFloat16, double size = 1) const;
  Tensor integers(int64_t below, at::IntArrayRef shape) const;
  /// The number of copies of inputs of `bytes` that do not fit into a GPU's cache together.
  size_t num_copies(double bytes) const;
  /// `peak`: FLOP/s of the matrix units in use. Returns the timing; none if the row has failed.
  std::optional<Timing> row(const Name& name, const Work& work, double peak,
                            const std::function<std::vector<Launch>()>& make);
  /// Measures forward with a graph, and backward alone. `inputs` makes the tensors; the first
  /// `num_differentiable` get gradients.
  void both(const std::string& operation, const std::string& shape, const Work& there,
            const Work& back, size_t num_differentiable, const std::function<Tensors()>& inputs,
            const Forward& forward);
  void measure_copies();
  std::vector<Product> layer_products() const;
  /// (m, k) · (k, n); `left_turned`, `right_turned`: whether the layer stores that operand
  /// transposed.
  void measure_product(const std::string& what, int64_t m, int64_t k, int64_t n, bool left_turned,
                       bool right_turned);
  void measure_products();
  void measure_float8_product(const std::string& what, int64_t m, int64_t k, int64_t n,
                              bool by_rows, bool is_fast);
  void measure_float8_products();
  void measure_quantization();
  /// The products of a linear layer, including the quantisation of their operands.
  void measure_float8_layers();
  void measure_norms();
  void measure_gates();
  /// (B, S, n, hd) from a packed projection of all heads.
  Tensor heads(const Tensor& packed, int64_t first, int64_t count) const;
  Tensors q_k_v(int64_t tokens) const;
  std::string text_of_heads(int64_t tokens) const;
  void measure_rope();
  void measure_attention();
  void measure_experts();
  void measure_ends();
  void measure_adamw();

  Device& device_;
  Options options_;
  bool is_small_;
  Sizes sizes_;
  Stopwatch watch_;
  double bandwidth_ = 0, bf16_peak_ = 0, float8_peak_ = 0;
  bool is_ok_ = true;
};

}  // namespace titan::probe
