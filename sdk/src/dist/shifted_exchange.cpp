#include <titan/dist/shifted_exchange.h>

#include <cstring>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <titan/value.h>

namespace titan::dist {
namespace {

constexpr int64_t kAlignment = 16;  // of each tensor in the message, for views of any dtype

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<int64_t>(tensor.element_size());
}

/// The text, and dtype and shape of each tensor, as JSON.
std::string head_of(const TensorMessage& message) {
  Value tensors = Value::list();
  for (const at::Tensor& tensor : message.tensors) {
    Value::List row = {static_cast<int64_t>(tensor.scalar_type())};
    for (const int64_t size : tensor.sizes()) row.emplace_back(size);
    tensors.as_list().emplace_back(std::move(row));
  }
  return to_json(Value::map({{"text", message.text}, {"tensors", std::move(tensors)}}));
}

/// The part of `memory` for the next tensor; advances `position`.
at::Tensor next_in(const at::Tensor& memory, int64_t& position, at::ScalarType dtype,
                   at::IntArrayRef shape) {
  int64_t bytes = static_cast<int64_t>(at::elementSize(dtype));
  for (const int64_t size : shape) bytes *= size;
  const at::Tensor part = memory.narrow(0, position, bytes).view(dtype).view(shape);
  position += aligned(bytes);
  return part;
}

}  // namespace

TensorMessage exchange_shifted(const TensorMessage& own, int shift, const Group& group,
                               c10::Device device) {
  const at::NoGradGuard no_grad;
  const std::string head = head_of(own);
  const auto head_bytes = static_cast<int64_t>(head.size());
  int64_t size = aligned(head_bytes), position = size;
  for (const at::Tensor& tensor : own.tensors) size += aligned(bytes_of(tensor));
  const at::Tensor packed = at::empty({size}, at::TensorOptions().dtype(at::kByte));
  std::memcpy(packed.mutable_data_ptr(), head.data(), head.size());
  for (const at::Tensor& tensor : own.tensors)
    next_in(packed, position, tensor.scalar_type(), tensor.sizes()).copy_(tensor);

  const int64_t num_ranks = group.size();
  const at::Tensor own_sizes = at::empty({1, 2}, at::TensorOptions().dtype(at::kLong));
  own_sizes.mutable_data_ptr<int64_t>()[0] = head_bytes;
  own_sizes.mutable_data_ptr<int64_t>()[1] = size;
  const at::Tensor all_sizes =
      at::empty({num_ranks, 2}, at::TensorOptions().dtype(at::kLong).device(device));
  group.all_gather(all_sizes, own_sizes.to(device)).wait();
  const at::Tensor sizes = all_sizes.cpu();
  const auto to = static_cast<size_t>((group.rank() + shift) % num_ranks);
  const auto from = static_cast<size_t>((group.rank() + num_ranks - shift) % num_ranks);
  const int64_t* theirs = sizes.const_data_ptr<int64_t>() + 2 * from;
  const auto count = static_cast<size_t>(num_ranks);
  RowSplits splits = {.sent = std::vector<int64_t>(count), .received = std::vector<int64_t>(count)};
  splits.sent[to] = size;
  splits.received[from] = theirs[1];
  const at::Tensor received =
      at::empty({theirs[1]}, at::TensorOptions().dtype(at::kByte).device(device));
  group.all_to_all(received, packed.to(device), splits).wait();

  const at::Tensor memory = received.cpu();
  const Value theirs_head = parse_json(
      {static_cast<const char*>(memory.const_data_ptr()), static_cast<size_t>(theirs[0])});
  TensorMessage message = {.text = theirs_head.at("text").as_string(), .tensors = {}};
  position = aligned(theirs[0]);
  for (const Value& row : theirs_head.at("tensors").as_list()) {
    std::vector<int64_t> shape;
    for (const Value& number : row.as_list()) shape.push_back(number.as_integer());
    const auto dtype = static_cast<at::ScalarType>(shape.front());
    shape.erase(shape.begin());
    message.tensors.push_back(next_in(memory, position, dtype, shape));
  }
  return message;
}

}  // namespace titan::dist
