#include "tests/sdk/nn/fake_group.h"

#include <ATen/ops/equal.h>

namespace titan::testing {

dist::Group fake_group(int rank, int size, const std::string& name) {
  return dist::Group(name, dist::make_fake_backend(rank, size));
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() &&
         at::equal(a.detach().contiguous().view(at::kInt), b.detach().contiguous().view(at::kInt));
}

}  // namespace titan::testing
