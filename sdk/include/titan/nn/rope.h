// Rotary position embedding in Hugging Face's half-split layout. Su et al., 2021; scaling of
// Llama 3.1; YaRN: Peng et al., 2023.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>
#include <titan/nn/kernel_seam.h>

namespace titan::nn {

/// Wavelengths with more than beta_fast rotations in `original_max_position` stay unchanged; those
/// with fewer than beta_slow are stretched by `factor`; between them a ramp interpolates.
struct YarnOptions {
  double factor = 1;
  int64_t original_max_position = 4096;
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncates = true;  ///< round the ends of the ramp to integers (false for gpt-oss)
  double amplitude = 1;   ///< of cos and sin
};

/// YaRN's factor of attention scores, applied once to queries and once to keys: 0.1 · mscale ·
/// ln(factor) + 1, and 1 for a factor of at most 1.
TITAN_API double yarn_amplitude(double factor, double mscale = 1);

struct RopeOptions {
  double theta = 500000;
  /// Llama 3.1's scaling of long wavelengths; 1: none.
  double scaling_factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_position = 8192;
  std::optional<YarnOptions> yarn = {};  ///< replaces Llama 3.1's scaling
};

/// Inverse frequencies (head_dim / 2), fp32: theta^(-2j / head_dim), long wavelengths scaled.
/// Throws a config Error for an odd head_dim, and for YaRN options that leave no ramp within the
/// head.
TITAN_API std::vector<float> rope_frequencies(int64_t head_dim, const RopeOptions& options);

/// cos and sin of positions 0 ... n-1, times the amplitude, (n, head_dim / 2).
struct RopeTables {
  at::Tensor cos, sin;
};

/// Rotates queries and keys by the angles of their positions.
class TITAN_API RopeKernel {
 public:
  virtual ~RopeKernel();
  /// q (B, S, H, hd), k (B, S, KV, hd), `tables` in fp32 (double for a double q), positions int64,
  /// (B or 1, S), or undefined for 0 ... S-1 -> both rotated. Differentiable in q and k.
  virtual std::pair<at::Tensor, at::Tensor> rotate(const at::Tensor& q, const at::Tensor& k,
                                                   const RopeTables& tables,
                                                   const at::Tensor& positions) = 0;
};

/// Rotates queries and keys with tables in fp32 that grow on demand and are on the device of the
/// activations. One per model: attention layers share it.
class TITAN_API Rope {
 public:
  Rope(int64_t head_dim, const RopeOptions& options);

  using Tables = RopeTables;
  /// q (B, S, H, hd) and k (B, S, KV, hd), rotated by the positions of `batch`.
  std::pair<at::Tensor, at::Tensor> rotate(const at::Tensor& q, const at::Tensor& k,
                                           const Batch& batch);
  /// The tables that rotate() uses for the positions of `batch` and the sequence of `x` (B, S,
  /// ...), on its device, fp32 (double for a double x).
  RopeTables tables_for(const at::Tensor& x, const Batch& batch);
  /// Tables of at least `num_positions` rows on `device`.
  const Tables& tables(int64_t num_positions, c10::Device device);

  /// As Linear::set_kernel and wrap_kernel, for all layers that share this.
  void set_kernel(std::string owner, std::unique_ptr<RopeKernel> kernel);
  void wrap_kernel(std::string owner, const KernelAround<RopeKernel>& around);
  /// As Linear::skip_kernel: `owner` computes the rotation itself, from the tables, as part of a
  /// larger kernel. It may do so in any number of the layers that share this.
  void skip_kernel(std::string owner);
  const KernelOwners& kernel_owners() const { return kernel_.owners(); }

 private:
  int64_t head_dim_;
  RopeOptions options_;
  Tables tables_;
  KernelSeam<RopeKernel> kernel_;
};

}  // namespace titan::nn
