#include <titan/nn/init.h>

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

/// Turns a random word into a value of the distribution.
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

  float operator()(uint32_t word) const {
    const double u = center_ + half_width_ * symmetric_uniform(word);
    const double x = init_.mean + init_.std * std::sqrt(2.0) * inverse_erf(u);
    if (init_.kind == Init::Kind::normal) return static_cast<float>(x);
    return static_cast<float>(std::fmin(std::fmax(x, init_.lower), init_.upper));
  }

 private:
  Init init_;
  double center_ = 0, half_width_ = 1;
};

/// Writes elements [first, first + count) of the global tensor.
void fill_run(float* out, int64_t first, int64_t count, const Sampler& sample, uint64_t key) {
  int64_t i = 0;
  while (i < count) {
    const int64_t element = first + i;
    const uint64_t counter = static_cast<uint64_t>(element) / 4;
    const PhiloxBlock words = philox4x32(
        {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0}, key);
    for (int64_t lane = element % 4; lane < 4 && i < count; ++lane, ++i)
      out[i] = sample(words[lane]);
  }
}

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

  const bool in_place = out.device().is_cpu() && out.scalar_type() == at::kFloat;
  at::Tensor values =
      in_place ? out : at::empty(slice.sizes, at::TensorOptions().dtype(at::kFloat));
  float* data = values.mutable_data_ptr<float>();
  at::parallel_for(0, num_rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, row_length)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       int64_t first = 0, stride = 1, rest = row;
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
  if (!in_place) out.copy_(values);
}

}  // namespace titan::nn
