#include "texts.h"

#include <algorithm>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <titan/error.h>

namespace titan::replicas {
namespace {

/// Far above any text of a step; a larger number is no length.
constexpr int64_t kMostBytes = int64_t{1} << 32;

at::Tensor bytes_of(const std::string& text, int64_t length) {
  at::Tensor bytes = at::zeros({length}, at::kByte);
  std::copy(text.begin(), text.end(), bytes.mutable_data_ptr<uint8_t>());
  return bytes;
}

std::string text_of(const at::Tensor& bytes, int64_t length) {
  const auto* first = bytes.const_data_ptr<uint8_t>();
  return std::string(first, first + length);
}

int64_t checked(int64_t length) {
  TITAN_CHECK(length >= 0 && length < kMostBytes, distributed, "a rank announces a text of ",
              length, " bytes");
  return length;
}

at::Tensor number(int64_t value, c10::Device device) {
  return at::empty({1}, at::kLong).fill_(value).to(device);
}

}  // namespace

std::vector<std::string> all_gather_text(const dist::Group& group, const std::string& text,
                                         c10::Device device) {
  if (group.size() == 1) return {text};
  const int64_t size = group.size();
  at::Tensor lengths = at::empty({size}, at::TensorOptions().dtype(at::kLong).device(device));
  group.all_gather(lengths, number(static_cast<int64_t>(text.size()), device)).wait();
  lengths = lengths.cpu();
  int64_t longest = 1;
  for (int64_t i = 0; i < size; ++i)
    longest = std::max(longest, checked(lengths[i].item<int64_t>()));
  at::Tensor all = at::empty({size, longest}, at::TensorOptions().dtype(at::kByte).device(device));
  group.all_gather(all.view({-1}), bytes_of(text, longest).to(device)).wait();
  all = all.cpu();
  std::vector<std::string> texts;
  for (int64_t i = 0; i < size; ++i) texts.push_back(text_of(all[i], lengths[i].item<int64_t>()));
  return texts;
}

std::string broadcast_text(const dist::Group& group, const std::string& text, int root,
                           c10::Device device) {
  if (group.size() == 1) return text;
  at::Tensor length = number(static_cast<int64_t>(text.size()), device);
  group.broadcast(length, root).wait();
  const int64_t bytes = checked(length.item<int64_t>());
  if (bytes == 0) return {};
  at::Tensor content =
      (group.rank() == root ? bytes_of(text, bytes) : bytes_of("", bytes)).to(device);
  group.broadcast(content, root).wait();
  return text_of(content.cpu(), bytes);
}

}  // namespace titan::replicas
