#include "numbers.h"

#include <algorithm>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>

namespace titan::probe {
namespace {

using at::Tensor;

constexpr int64_t kChunk = int64_t{1} << 24;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kSmallBlocks = 16;  // of 1 MiB
constexpr int64_t kMiddle = 9 * kMiB;

Tensor as_bytes(const Tensor& tensor) {
  return tensor.detach().contiguous().flatten().view(at::kByte);
}

}  // namespace

double relative_error(const Tensor& out, const Tensor& exact) {
  const Tensor wide = out.detach().to(at::kDouble);
  const Tensor reference = exact.detach().to(wide.device(), at::kDouble);
  const double error = at::linalg_vector_norm(wide - reference).item<double>();
  const double size = at::linalg_vector_norm(reference).item<double>();
  return size > 0 ? error / size : error;
}

double share_of_unequal_bytes(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return 1;
  if (a.numel() == 0) return 0;
  const Tensor left = as_bytes(a), right = as_bytes(b).to(left.device());
  return left.ne(right).sum().item<double>() / static_cast<double>(left.numel());
}

Tensor direction_like(const Tensor& out) {
  const auto options = out.options().requires_grad(false);
  if (out.dim() == 0) return at::zeros({}, options).add_(1);
  return at::arange(out.numel(), options.dtype(at::kLong))
      .mul_(7919)
      .remainder_(251)
      .sub_(125)
      .to(out.scalar_type())
      .div_(64)
      .view(out.sizes());
}

Checksum::Checksum(at::Device device) {
  // the mixing step of splitmix64, made odd
  weights_ = at::arange(1, kChunk / 8 + 1, at::TensorOptions().device(device).dtype(at::kLong));
  weights_.mul_(static_cast<int64_t>(0x9E3779B97F4A7C15u));
  weights_.bitwise_xor_(weights_.bitwise_right_shift(31));
  weights_.mul_(static_cast<int64_t>(0x94D049BB133111EBu)).bitwise_or_(1);
}

Tensor Checksum::of(const Tensor& tensor) const {
  Tensor bytes = as_bytes(tensor);
  Tensor sum = at::zeros({}, weights_.options());
  const int64_t unit = 4, rest = bytes.numel() % unit, whole = bytes.numel() - rest;
  const auto add = [&](const Tensor& numbers) {
    for (int64_t first = 0; first < numbers.numel(); first += weights_.numel()) {
      const int64_t count = std::min(weights_.numel(), numbers.numel() - first);
      sum.mul_(6364136223846793005)
          .add_(numbers.narrow(0, first, count)
                    .to(at::kLong)
                    .mul_(weights_.narrow(0, 0, count))
                    .sum());
    }
  };
  if (whole > 0) add(bytes.narrow(0, 0, whole).view(at::kInt));
  if (rest > 0) add(bytes.narrow(0, whole, rest));
  return sum;
}

void Poison::release() {
  if (!device_.is_cpu()) c10::getDeviceAllocator(device_.type())->emptyCache();
}

std::vector<int64_t> Poison::find_gaps() const {
  constexpr int64_t kLargest = int64_t{1} << 30, kSmallest = 512;
  std::vector<int64_t> sizes;
  std::vector<Tensor> blocks;
  for (int64_t size = kLargest; size >= kSmallest; size /= 2)
    while (true) {
      const int64_t before = reserved();
      blocks.push_back(at::empty({size}, at::TensorOptions().device(device_).dtype(at::kByte)));
      if (reserved() > before) {  // no gap has this size: the block is new memory
        blocks.pop_back();
        c10::getDeviceAllocator(device_.type())->emptyCache();
        break;
      }
      sizes.push_back(size);
    }
  return sizes;
}

void Poison::cover(int64_t bytes) {
  release();
  if (!is_cached()) return;
  if (!device_.is_cpu()) gaps_ = find_gaps();
  bytes_ = bytes;
  fill();
  reserved_ = reserved();
}

void Poison::spread() {
  if (!is_cached()) return;
  if (is_exceeded())
    cover(bytes_ + reserved() - reserved_);
  else
    fill();
}

void Poison::fill() const {
  const auto options = at::TensorOptions().device(device_).dtype(at::kByte);
  std::vector<Tensor> blocks;
  const auto take = [&](int64_t size) {
    blocks.push_back(at::empty({size}, options));
    blocks.back().fill_(255);
  };
  if (device_.is_cpu()) {  // sizes that small shapes allocate
    for (int64_t size = 64; size <= 8 * kMiB; size *= 2)
      for (const int64_t more : {size, size + size / 2}) take(more);
    return;
  }
  for (const int64_t size : gaps_) take(size);
  // the caching allocator has separate pools for blocks up to 1 MiB, up to 10 MiB and larger ones
  for (int64_t i = 0; i < kSmallBlocks; ++i) take(kMiB);
  for (int64_t i = 0; i < 2; ++i) take(kMiddle);
  take(std::max(bytes_, 32 * kMiB));
}

bool Poison::is_cached() const {
  if (device_.is_cpu()) return true;
  const Tensor block = at::empty({1}, at::TensorOptions().device(device_).dtype(at::kByte));
  return reserved() > 0;
}

bool Poison::is_exceeded() const {
  return reserved() > reserved_;
}

double Poison::share_seen() const {
  const auto options = at::TensorOptions().device(device_).dtype(at::kFloat);
  double seen = 0, all = 0;
  for (const int64_t size : {int64_t{128}, kMiB / 8, 4 * kMiB}) {
    const Tensor fresh = at::empty({size}, options);
    seen += at::isnan(fresh).sum().item<double>();
    all += static_cast<double>(size);
  }
  return seen / all;
}

int64_t Poison::reserved() const {
  if (device_.is_cpu()) return 0;
  const auto stats = c10::getDeviceAllocator(device_.type())->getDeviceStats(device_.index());
  return stats.reserved_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
      .current;
}

}  // namespace titan::probe
