#include "tensor_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <ATen/ops/linalg_vector_norm.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Half.h>
#include <titan/error.h>

namespace titan::debugging {
namespace {

/// The finalizer of MurmurHash3.
uint64_t mixed(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

uint64_t hash_of(uint64_t place, uint64_t bits) {
  return mixed(mixed(place + 0x9e3779b97f4a7c15ULL) ^ mixed(bits + 0x632be59bd9b4e019ULL));
}

template <class T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

/// Row-major indices in the larger tensor of the elements of a part, in order.
class Places {
 public:
  Places(at::IntArrayRef sizes, const GlobalPart& part) : sizes_(sizes.vec()) {
    at_.assign(sizes_.size(), 0);
    strides_.assign(sizes_.size(), 1);
    const std::vector<int64_t> shape = part.offsets.empty() ? sizes_ : part.shape;
    TITAN_ASSERT(shape.size() == sizes_.size(), "a part with ", sizes_.size(),
                 " dimensions of a tensor with ", shape.size());
    for (size_t dim = sizes_.size(); dim-- > 1;) strides_[dim - 1] = strides_[dim] * shape[dim];
    for (size_t dim = 0; dim < part.offsets.size(); ++dim)
      place_ += part.offsets[dim] * strides_[dim];
  }
  uint64_t next() {
    const auto place = static_cast<uint64_t>(place_);
    for (size_t dim = sizes_.size(); dim-- > 0;) {
      place_ += strides_[dim];
      if (++at_[dim] < sizes_[dim]) break;
      place_ -= strides_[dim] * sizes_[dim];
      at_[dim] = 0;
    }
    return place;
  }

 private:
  std::vector<int64_t> sizes_, strides_, at_;
  int64_t place_ = 0;
};

template <class T>
TensorStatistics walk(const at::Tensor& host, const GlobalPart& part) {
  TensorStatistics all{.count = host.numel()};
  const T* values = static_cast<const T*>(host.const_data_ptr());
  Places places(host.sizes(), part);
  double sum = 0, squares = 0;
  int64_t num_finite = 0;
  for (int64_t i = 0; i < all.count; ++i) {
    all.hash += hash_of(places.next(), bits_of(values[i]));
    double value;
    if constexpr (std::is_floating_point_v<T> || std::is_integral_v<T>)
      value = static_cast<double>(values[i]);
    else
      value = static_cast<double>(static_cast<float>(values[i]));
    if (!std::isfinite(value)) {
      ++(std::isnan(value) ? all.num_nan : all.num_inf);
      if (all.first_bad < 0) all.first_bad = i;
      continue;
    }
    all.min = num_finite ? std::min(all.min, value) : value;
    all.max = num_finite ? std::max(all.max, value) : value;
    ++num_finite;
    sum += value;
    squares += value * value;
  }
  if (num_finite > 0) {
    all.mean = sum / static_cast<double>(num_finite);
    all.rms = std::sqrt(squares / static_cast<double>(num_finite));
  }
  return all;
}

std::string index_text(int64_t place, at::IntArrayRef sizes) {
  std::string text;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    text = std::to_string(place % sizes[dim]) + (text.empty() ? "" : ", ") + text;
    place /= sizes[dim];
  }
  return "[" + text + "]";
}

}  // namespace

TensorStatistics statistics_of(const at::Tensor& tensor, const GlobalPart& part) {
  const at::Tensor host = tensor.detach().cpu().contiguous();
  switch (host.scalar_type()) {
    case at::kDouble:
      return walk<double>(host, part);
    case at::kFloat:
      return walk<float>(host, part);
    case at::kBFloat16:
      return walk<c10::BFloat16>(host, part);
    case at::kHalf:
      return walk<c10::Half>(host, part);
    case at::kFloat8_e4m3fn:
      return walk<c10::Float8_e4m3fn>(host, part);
    case at::kFloat8_e5m2:
      return walk<c10::Float8_e5m2>(host, part);
    case at::kLong:
      return walk<int64_t>(host, part);
    case at::kInt:
      return walk<int32_t>(host, part);
    case at::kByte:
      return walk<uint8_t>(host, part);
    default:
      return {};
  }
}

bool has_bad_values(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta() || tensor.numel() == 0) return false;
  if (!at::isFloatingType(tensor.scalar_type())) return false;
  const at::Tensor plain = tensor.detach();
  const at::Tensor wide = plain.element_size() == 1 ? plain.to(at::kFloat) : plain;
  // the largest absolute value: no overflowing sums and no memory for flags
  const at::Tensor largest = at::linalg_vector_norm(wide, std::numeric_limits<double>::infinity());
  return !std::isfinite(largest.to(at::kDouble).cpu().item<double>());
}

std::string bad_values_text(const TensorStatistics& s, at::IntArrayRef sizes) {
  std::string text =
      detail::concat(s.num_bad(), " of ", s.count, " values are bad (nan ", s.num_nan, ", inf ",
                     s.num_inf, "), the first at ", index_text(s.first_bad, sizes));
  if (s.num_bad() < s.count)
    text += detail::concat("; the others are between ", s.min, " and ", s.max);
  return text;
}

}  // namespace titan::debugging
