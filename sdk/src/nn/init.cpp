#include <titan/nn/init.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <xxhash.h>

#include <titan/error.h>

#include "inverse_erf.h"
#include "philox.h"

namespace titan::nn {
namespace {

/// Uniform in (-1, 1), never an end point: odd multiples of 2^-32.
double symmetric_uniform(uint32_t word) {
  return (2.0 * word + 1.0) * 0x1p-32 - 1.0;
}

/// Maps a random word to a value of the distribution.
class Sampler {
 public:
  explicit Sampler(const Init& init) : init_(init) {
    if (init.kind == Init::Kind::truncated_normal) {
      const auto cdf = [&](double bound) {
        return 0.5 * (1 + std::erf((bound - init.mean) / init.std / std::sqrt(2.0)));
      };
      const double low = 2 * cdf(init.lower) - 1, high = 2 * cdf(init.upper) - 1;
      center_ = 0.5 * (high + low);
      half_width_ = 0.5 * (high - low);
    }
  }

  /// Maps `count` words, at most kErfinvBlock.
  void operator()(const uint32_t* words, float* out, int count) const {
    double x[kErfinvBlock];
    for (int i = 0; i < count; ++i) x[i] = center_ + half_width_ * symmetric_uniform(words[i]);
    double y[kErfinvBlock];
    inverse_erf(x, y, count);
    const double scale = init_.std * std::sqrt(2.0);
    const bool is_cut = init_.kind != Init::Kind::normal;
    for (int i = 0; i < count; ++i) {
      const double value = init_.mean + scale * y[i];
      out[i] = static_cast<float>(is_cut ? std::fmin(std::fmax(value, init_.lower), init_.upper)
                                         : value);
    }
  }

 private:
  Init init_;
  double center_ = 0, half_width_ = 1;
};

/// Writes elements [first, first + count) of the global tensor.
void fill_run(float* out, int64_t first, int64_t count, const Sampler& sample, uint64_t key) {
  uint32_t words[kErfinvBlock];
  for (int64_t i = 0; i < count;) {
    // whole blocks of four words; the first may begin before the run
    const int64_t element = first + i, skipped = element % 4;
    const int64_t wanted = std::min<int64_t>(kErfinvBlock - skipped, count - i);
    for (int64_t at = 0; at < skipped + wanted; at += 4) {
      const uint64_t counter = static_cast<uint64_t>(element - skipped + at) / 4;
      const PhiloxBlock block = philox4x32(
          {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0}, key);
      std::copy(block.begin(), block.end(), words + at);
    }
    sample(words + skipped, out + i, static_cast<int>(wanted));
    i += wanted;
  }
}

/// Maximum number of elements per copy to a device: 64 MiB of pinned memory.
constexpr int64_t kStagedElements = int64_t{1} << 24;

}  // namespace

int64_t Slice::num_elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

void fill(at::Tensor& out, const Init& init, uint64_t seed, std::string_view name,
          const std::vector<int64_t>& global_shape, const Slice& slice) {
  TITAN_ASSERT(out.sizes() == at::IntArrayRef(slice.sizes) && out.is_contiguous(), name);
  if (out.is_meta()) return;
  if (init.kind == Init::Kind::constant) {
    out.fill_(init.mean);
    return;
  }
  // Rows: everything but the last dimension. Each is a run of consecutive elements of the global
  // tensor.
  const int64_t num_dims = static_cast<int64_t>(global_shape.size());
  const int64_t row_length = num_dims ? slice.sizes.back() : 1;
  const int64_t num_rows = row_length ? slice.num_elements() / row_length : 0;
  const uint64_t key = XXH3_64bits_withSeed(name.data(), name.size(), seed);
  const Sampler sample(init);

  const auto fill_rows = [&](float* data, int64_t first_row, int64_t count) {
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, row_length));
    at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t first = 0, stride = 1, rest = first_row + row;
        for (int64_t dim = num_dims - 1; dim >= 0; --dim) {
          int64_t index = slice.offsets[dim];
          if (dim < num_dims - 1) {
            index += rest % slice.sizes[dim];
            rest /= slice.sizes[dim];
          }
          first += index * stride;
          stride *= global_shape[dim];
        }
        fill_run(data + row * row_length, first, row_length, sample, key);
      }
    });
  };
  const bool is_on_host = out.device().is_cpu(), is_float = out.scalar_type() == at::kFloat;
  if (is_on_host && is_float) return fill_rows(out.mutable_data_ptr<float>(), 0, num_rows);
  if (num_rows == 0) return;
  // A device copies one piece while the host computes the next; LibTorch reuses pinned memory once
  // its copy is done.
  const at::Tensor rows = out.view({num_rows, row_length});
  const int64_t rows_per_piece = std::max<int64_t>(1, kStagedElements / row_length);
  for (int64_t first = 0; first < num_rows; first += rows_per_piece) {
    const int64_t count = std::min(rows_per_piece, num_rows - first);
    const at::Tensor piece = at::empty(
        {count, row_length}, at::TensorOptions().dtype(at::kFloat).pinned_memory(!is_on_host));
    fill_rows(piece.mutable_data_ptr<float>(), first, count);
    const at::Tensor target = rows.narrow(0, first, count);
    if (is_on_host || is_float)
      target.copy_(piece, /*non_blocking=*/!is_on_host);
    else
      target.copy_(piece.to(out.device(), /*non_blocking=*/true));
  }
}

}  // namespace titan::nn
