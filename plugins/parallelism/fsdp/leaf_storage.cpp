#include "leaf_storage.h"

#include <ATen/ops/empty.h>

#include <titan/error.h>

namespace titan::fsdp {
namespace {

c10::StorageImpl& storage_of(const at::Tensor& tensor) {
  return *tensor.storage().unsafeGetStorageImpl();
}

}  // namespace

at::Tensor make_empty_leaf(const std::vector<int64_t>& sizes, at::ScalarType dtype,
                           c10::Device device, bool requires_grad) {
  at::Tensor leaf = at::empty({0}, at::TensorOptions().dtype(dtype).device(device));
  leaf.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return leaf.set_requires_grad(requires_grad);
}

void give_memory(const at::Tensor& leaf, const at::Tensor& memory) {
  TITAN_ASSERT(memory.storage_offset() == 0 && memory.nbytes() >= leaf.nbytes(), memory.sizes(),
               " for ", leaf.sizes());
  c10::StorageImpl& from = storage_of(memory);
  c10::StorageImpl& to = storage_of(leaf);
  const size_t num_bytes = from.nbytes();
  to.set_data_ptr_noswap(from.set_data_ptr(c10::DataPtr(nullptr, memory.device())));
  to.set_nbytes(num_bytes);
  from.set_nbytes(0);
}

void drop_memory(const at::Tensor& leaf) {
  c10::StorageImpl& storage = storage_of(leaf);
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, leaf.device()));
  storage.set_nbytes(0);
}

}  // namespace titan::fsdp
