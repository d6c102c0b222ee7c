// A group that pretends to be one rank of several, for tests of what each rank holds; and bitwise
// comparison.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <titan/dist/group.h>
#include <titan/error.h>

namespace titan::testing {

/// Knows its rank and size; communicating through it is an error.
class FakeBackend final : public dist::Backend {
 public:
  FakeBackend(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce(at::Tensor&, dist::Reduce) override { refuse(); }
  void all_gather(at::Tensor&, const at::Tensor&) override { refuse(); }
  void reduce_scatter(at::Tensor&, const at::Tensor&, dist::Reduce) override { refuse(); }
  void broadcast(at::Tensor&, int) override { refuse(); }
  void barrier() override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    fail(ErrorKind::internal, "a fake group cannot communicate");
  }
  int rank_, size_;
};

inline dist::Group fake_group(int rank, int size) {
  return dist::Group("fake", std::make_shared<FakeBackend>(rank, size));
}

/// Same shape and the same bits in every element of two fp32 tensors: signed zeros and NaN count.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() &&
         at::equal(a.detach().contiguous().view(at::kInt), b.detach().contiguous().view(at::kInt));
}

}  // namespace titan::testing
