#include <titan/nn/rounding.h>

#include <bit>
#include <cmath>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <titan/error.h>

#include "philox.h"
#include "rounding_key.h"

namespace titan::nn {
namespace {

/// The random words for one step of one parameter.
struct Stream {
  uint64_t key;
  uint64_t step;

  PhiloxBlock block(uint64_t number) const {
    return philox4x32({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32),
                       static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)},
                      key);
  }
};

/// Index in the global tensor of the first element of the slice's row number `row`; rows run along
/// the last dimension.
int64_t first_of_row(int64_t row, const std::vector<int64_t>& global_shape, const Slice& slice) {
  int64_t first = 0, stride = 1;
  for (size_t dim = global_shape.size(); dim-- > 0;) {
    int64_t index = slice.offsets[dim];
    if (dim + 1 < global_shape.size()) {
      index += row % slice.sizes[dim];
      row /= slice.sizes[dim];
    }
    first += index * stride;
    stride *= global_shape[dim];
  }
  return first;
}

/// Calls `use(i, random 16 bits)` for elements [first, first + count) of the global tensor.
template <class Use>
void for_each_random(const Stream& stream, int64_t first, int64_t count, const Use& use) {
  for (int64_t i = 0; i < count;) {
    const int64_t element = first + i;
    const PhiloxBlock words = stream.block(static_cast<uint64_t>(element) / 4);
    for (int64_t lane = element % 4; lane < 4 && i < count; ++lane, ++i) use(i, words[lane] >> 16);
  }
}

template <class Use>
void for_each_row(const std::vector<int64_t>& global_shape, const Slice& slice, const Use& use) {
  const int64_t length = global_shape.empty() ? 1 : slice.sizes.back();
  const int64_t num_rows = length ? slice.num_elements() / length : 0;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length));
  at::parallel_for(0, num_rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      use(row * length, first_of_row(row, global_shape, slice), length);
  });
}

/// A float's upper half is the bfloat16 below it in size. Adding 16 random bits carries into the
/// upper half with the probability that the lower half gives.
c10::BFloat16 rounded(float value, uint32_t random) {
  if (!std::isfinite(value)) return c10::BFloat16(value);
  const uint32_t sum = std::bit_cast<uint32_t>(value) + random;
  return c10::BFloat16(static_cast<uint16_t>(sum >> 16), c10::BFloat16::from_bits());
}

}  // namespace

void round_stochastically(const at::Tensor& out, const at::Tensor& values, uint64_t seed,
                          std::string_view name, int64_t step,
                          const std::vector<int64_t>& global_shape, const Slice& slice) {
  const at::IntArrayRef sizes(slice.sizes);
  TITAN_ASSERT(out.scalar_type() == at::kBFloat16 && values.scalar_type() == at::kFloat, name);
  TITAN_ASSERT(out.sizes() == sizes && values.sizes() == sizes && out.is_contiguous() &&
                   values.is_contiguous() && out.device() == values.device(),
               name);
  TITAN_ASSERT(step >= 1, "step ", step, " of '", name, "'");  // step 0 is the initial values
  if (out.is_meta()) return;
  const Stream stream{rounding_key(seed, name), static_cast<uint64_t>(step)};
  if (out.is_cpu()) {
    const float* from = values.const_data_ptr<float>();
    c10::BFloat16* to = out.mutable_data_ptr<c10::BFloat16>();
    for_each_row(global_shape, slice, [&](int64_t place, int64_t first, int64_t count) {
      for_each_random(stream, first, count, [&](int64_t i, uint32_t random) {
        to[place + i] = rounded(from[place + i], random);
      });
    });
    return;
  }
  // pinned, so that the host continues during the copy
  const at::Tensor noise =
      at::empty(slice.sizes, at::TensorOptions().dtype(at::kInt).pinned_memory(true));
  int32_t* random_bits = noise.mutable_data_ptr<int32_t>();
  for_each_row(global_shape, slice, [&](int64_t place, int64_t first, int64_t count) {
    for_each_random(stream, first, count, [&](int64_t i, uint32_t random) {
      random_bits[place + i] = static_cast<int32_t>(random);
    });
  });
  const at::Tensor bits = values.view(at::kInt);
  const at::Tensor cut =
      bits.add(noise.to(values.device(), /*non_blocking=*/true)).bitwise_and_(-0x10000);
  // a value whose lower half is zero stays the same when rounded to bfloat16
  out.copy_(cut.view(at::kFloat).where(values.isfinite(), values));
}

}  // namespace titan::nn
