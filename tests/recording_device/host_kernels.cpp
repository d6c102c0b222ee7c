#include "host_kernels.h"

#include <set>
#include <sstream>
#include <string>

#include <ATen/core/List.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "graph.h"
#include "memory.h"

namespace titan::recording {
namespace {

using c10::IValue;

bool is_ours(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_privateuseone();
}

at::Tensor with_storage(const at::Tensor& like, c10::Storage storage, c10::DispatchKey key) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), like.dtype());
  c10::TensorImpl* impl = made.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides());
  impl->set_storage_offset(like.storage_offset());
  return made;
}

/// Operations for whose result the host has to wait on a GPU, because its size depends on values.
bool has_size_by_value(const std::string& name) {
  static const std::set<std::string> kNames = {"aten::nonzero",
                                               "aten::masked_select",
                                               "aten::_unique2",
                                               "aten::unique_dim",
                                               "aten::unique_consecutive",
                                               "aten::bincount",
                                               "aten::equal",
                                               "aten::repeat_interleave",
                                               "aten::nonzero_numpy",
                                               "aten::_local_scalar_dense",
                                               "aten::histc",
                                               "aten::is_set_to"};
  return kNames.contains(name);
}

bool has_mask(const std::string& name, const std::vector<at::Tensor>& tensors) {
  if (!name.starts_with("aten::index") && name != "aten::_index_put_impl_") return false;
  for (size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i].scalar_type() == at::kBool || tensors[i].scalar_type() == at::kByte) return true;
  return false;
}

/// Calls `f` for each tensor of an argument or a result, and replaces the tensor by f's result.
template <class F>
IValue mapped(const IValue& value, const c10::TypePtr& type, const F& f) {
  if (value.isTensor()) return value.toTensor().defined() ? IValue(f(value.toTensor())) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector())
      list.push_back(tensor.defined() ? f(tensor) : tensor);
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor && tensor->defined() ? std::optional(f(*tensor)) : tensor);
    return list;
  }
  return value;
}

void describe(std::ostream& out, const IValue& value) {
  if (value.isTensor())
    out << ' ' << (value.toTensor().defined() ? c10::str(value.toTensor().sizes()) : "none");
  else if (value.isTensorList())
    out << " x" << value.toListRef().size();
  else if (value.isDouble() || value.isInt() || value.isBool() || value.isIntList() ||
           value.isDoubleList())
    out << ' ' << std::hexfloat << value;
}

/// Runs the operation again on the same memory; new results are copied to the addresses of the old
/// ones.
void compute_again(const c10::OperatorHandle& op, const std::vector<IValue>& given,
                   const std::vector<IValue>& results) {
  SharedMemory memory;
  torch::jit::Stack stack;
  for (const IValue& value : given) {
    IValue argument = mapped(value, nullptr, [&](const at::Tensor& tensor) {
      return is_ours(tensor) ? memory.on_host(tensor) : tensor;
    });
    stack.push_back(argument.isDevice() ? IValue(c10::Device(c10::kCPU)) : argument);
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<at::Tensor> made;
    mapped(stack[i], nullptr, [&](const at::Tensor& tensor) {
      made.push_back(tensor);
      return tensor;
    });
    size_t next = 0;
    mapped(results[i], nullptr, [&](const at::Tensor& tensor) {
      const at::Tensor place = memory.on_host(tensor), value = made.at(next++);
      if (place.data_ptr() != value.data_ptr()) place.copy_(value);
      return tensor;
    });
  }
}

}  // namespace

at::Tensor alias_of(const at::Tensor& tensor) {
  if (!is_ours(tensor)) return tensor;
  c10::StorageImpl* own = tensor.storage().unsafeGetStorageImpl();
  c10::Storage address(c10::Storage::use_byte_size_t(), own->nbytes(),
                       c10::DataPtr(own->mutable_data(), tensor.device()));
  return with_storage(tensor, std::move(address), c10::DispatchKey::PrivateUse1);
}

Access access_of(const at::Tensor& tensor, bool is_write) {
  if (tensor.numel() == 0) return {};
  int64_t span = 1;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim)
    span += (tensor.size(dim) - 1) * tensor.stride(dim);
  const auto begin = reinterpret_cast<uintptr_t>(tensor.storage().data()) +
                     static_cast<uintptr_t>(tensor.storage_offset() * tensor.element_size());
  return {.begin = begin,
          .end = begin + static_cast<uintptr_t>(span * tensor.element_size()),
          .is_write = is_write};
}

at::Tensor SharedMemory::on_host(const at::Tensor& tensor) {
  c10::StorageImpl* own = tensor.storage().unsafeGetStorageImpl();
  c10::Storage& host = hosts_[own];
  if (!host) {
    const bool is_to_grow = own->nbytes() == 0;  // an `out` tensor whose size the kernel sets
    host = is_to_grow
               ? c10::Storage(c10::Storage::use_byte_size_t(), 0, c10::GetAllocator(c10::kCPU),
                              /*resizable=*/true)
               : c10::Storage(c10::Storage::use_byte_size_t(), own->nbytes(),
                              c10::DataPtr(own->mutable_data(), c10::Device(c10::kCPU)));
    devices_[host.unsafeGetStorageImpl()] = tensor.storage();
  }
  return with_storage(tensor, host, c10::DispatchKey::CPU);
}

void SharedMemory::grow(const at::Tensor& tensor, const at::Tensor& host) {
  c10::StorageImpl* own = tensor.storage().unsafeGetStorageImpl();
  if (own->nbytes() != 0 || host.storage().nbytes() == 0) return;
  own->set_data_ptr_noswap(adopt(host.storage()));
  own->set_nbytes(host.storage().nbytes());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides());
}

bool SharedMemory::shares(const at::Tensor& host_tensor) const {
  return devices_.contains(host_tensor.storage().unsafeGetStorageImpl());
}

at::Tensor SharedMemory::on_device(const at::Tensor& tensor) {
  c10::Storage& device = devices_[tensor.storage().unsafeGetStorageImpl()];
  if (!device)
    device = c10::Storage(c10::Storage::use_byte_size_t(), tensor.storage().nbytes(),
                          adopt(tensor.storage()), device_allocator(), /*resizable=*/true);
  return with_storage(tensor, device, c10::DispatchKey::PrivateUse1);
}

void compute_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t num_arguments = schema.arguments().size();
  const std::vector<IValue> given(stack->end() - static_cast<std::ptrdiff_t>(num_arguments),
                                  stack->end());
  SharedMemory memory;
  std::vector<at::Tensor> tensors;
  std::vector<Access> accesses;
  std::ostringstream what;
  what << op.operator_name();
  std::vector<std::pair<at::Tensor, at::Tensor>> written;
  bool writes = false;
  for (size_t i = 0; i < num_arguments; ++i) {
    IValue& argument = (*stack)[stack->size() - num_arguments + i];
    describe(what, argument);
    const auto* alias = schema.arguments()[i].alias_info();
    const bool is_written = alias && alias->isWrite();
    writes = writes || is_written;
    argument = mapped(argument, nullptr, [&](const at::Tensor& tensor) {
      tensors.push_back(tensor);
      if (!is_ours(tensor)) return tensor;
      at::Tensor host = memory.on_host(tensor);
      if (is_written && tensor.storage().nbytes() == 0)
        written.emplace_back(tensor, host);
      else
        accesses.push_back(access_of(tensor, is_written));
      return host;
    });
    if (argument.isDevice()) argument = IValue(c10::Device(c10::kCPU));
  }
  try {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  } catch (c10::Error& error) {
    error.add_context("in " + what.str() + ", computed for the recording device");
    throw;
  }
  for (const auto& [tensor, host] : written) {
    memory.grow(tensor, host);
    accesses.push_back(access_of(tensor, /*is_write=*/true));
  }

  const size_t num_returns = schema.returns().size();
  bool is_view = !writes && num_returns > 0;
  for (size_t i = 0; i < num_returns; ++i) {
    IValue& result = (*stack)[stack->size() - num_returns + i];
    const auto* alias = schema.returns()[i].alias_info();
    if (alias && alias->isWrite()) {
      for (size_t k = 0; k < num_arguments; ++k) {
        const auto* of_argument = schema.arguments()[k].alias_info();
        if (of_argument && of_argument->isWrite() &&
            of_argument->beforeSets() == alias->beforeSets())
          result = given[k];
      }
      continue;
    }
    result = mapped(result, nullptr, [&](const at::Tensor& tensor) {
      const bool is_new = !memory.shares(tensor);
      at::Tensor made = memory.on_device(tensor);
      if (is_new) accesses.push_back(access_of(made, /*is_write=*/true));
      is_view = is_view && !is_new;
      return made;
    });
    if (!result.isTensor() && !result.isTensorList()) is_view = false;
  }
  if (is_view) return;
  const std::string name = op.operator_name().name;
  const StreamId stream = current_stream();
  order().launch(what.str(), stream, accesses);
  if (is_capturing()) {
    const auto aliases = [](const std::vector<IValue>& values) {
      std::vector<IValue> held;
      for (const IValue& value : values) held.push_back(mapped(value, nullptr, alias_of));
      return held;
    };
    const std::vector<IValue> results(stack->end() - static_cast<std::ptrdiff_t>(num_returns),
                                      stack->end());
    record_for_replay([op, stream, accesses, text = what.str(), given = aliases(given),
                       results = aliases(results)] {
      compute_again(op, given, results);
      order().launch(text, stream, accesses);
    });
  }
  if (has_size_by_value(name) || has_mask(name, tensors))
    order().host_wait_for_stream(name, stream);
}

}  // namespace titan::recording
