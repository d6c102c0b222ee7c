// Rotary position embedding in Hugging Face's half-split layout. Su et al., 2021; scaling of
// Llama 3.1.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/export.h>

namespace titan::nn {

struct RopeOptions {
  double theta = 500000;
  /// Llama 3.1's scaling of long wavelengths; 1 = none.
  double scaling_factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_position = 8192;
};

/// Inverse frequencies (head_dim / 2), fp32: theta^(-2j / head_dim), long wavelengths scaled.
TITAN_API std::vector<float> rope_frequencies(int64_t head_dim, const RopeOptions& options);

/// Tables of cos and sin for positions 0 ... n-1, shape (n, head_dim / 2), fp32. Grow on demand,
/// live on the device of the activations. One per model: attention layers share it.
class TITAN_API Rope {
 public:
  Rope(int64_t head_dim, const RopeOptions& options);

  struct Tables {
    at::Tensor cos, sin;
  };
  /// Tables of at least `num_positions` rows on `device`.
  const Tables& tables(int64_t num_positions, c10::Device device);

 private:
  int64_t head_dim_;
  RopeOptions options_;
  Tables tables_;
};

}  // namespace titan::nn
