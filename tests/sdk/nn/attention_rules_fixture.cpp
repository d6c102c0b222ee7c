#include "tests/sdk/nn/attention_rules_fixture.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

namespace titan::attention_test {

Sight sees_all() {
  return [](const Tensor& queries, const Tensor& keys) { return queries.ge(keys); };
}

Sight sees_window(int64_t size) {
  return [=](const Tensor& queries, const Tensor& keys) {
    return queries.ge(keys).logical_and((queries - keys).lt(size));
  };
}

Sight sees_chunk(int64_t size) {
  const auto first_of_piece = [=](const Tensor& places) { return places - places.remainder(size); };
  return [=](const Tensor& queries, const Tensor& keys) {
    return queries.ge(keys).logical_and(first_of_piece(queries).eq(first_of_piece(keys)));
  };
}

Tensor masked_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Sight& sight,
                        const Tensor& documents, const Tensor& sinks) {
  const int64_t share = q.size(1) / k.size(1), num_keys = k.size(2);
  Tensor places = at::arange(q.size(2), at::TensorOptions().dtype(at::kLong));
  Tensor is_seen;  // (n, n), or (B, 1, n, n)
  if (documents.defined()) {
    const Tensor is_shared = documents.unsqueeze(2).eq(documents.unsqueeze(1));  // (B, n, n)
    const Tensor starts = places.expand_as(is_shared).masked_fill(~is_shared, num_keys).amin(-1);
    places = places - starts;  // (B, n): within its document
    is_seen = sight(places.unsqueeze(2), places.unsqueeze(1)).logical_and(is_shared).unsqueeze(1);
  } else {
    is_seen = sight(places.unsqueeze(1), places);
  }
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  Tensor scores = q.matmul(k.repeat_interleave(share, 1).transpose(2, 3)) * scale;
  scores = scores.masked_fill(is_seen.logical_not(), -INFINITY);
  if (sinks.defined())
    scores =
        at::cat({scores, sinks.view({1, -1, 1, 1}).expand({q.size(0), -1, q.size(2), -1})}, -1);
  return scores.softmax(-1).narrow(-1, 0, num_keys).matmul(v.repeat_interleave(share, 1));
}

Ruled window(int64_t size) {
  return {"window " + std::to_string(size), nn::windowed_attention(size), sees_window(size)};
}

Ruled chunk(int64_t size) {
  return {"chunk " + std::to_string(size), nn::chunked_attention(size), sees_chunk(size)};
}

std::vector<Ruled> rules_for(int64_t length) {
  std::vector<Ruled> rules;
  for (const int64_t size :
       {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{8}, length - 1, length, length + 5})
    if (size > 0) rules.push_back(window(size)), rules.push_back(chunk(size));
  return rules;
}

Tensors inputs(const Shape& s) {
  return {random({s.rows, s.length, s.heads, s.width}).transpose(1, 2),
          random({s.rows, s.length, s.kv_heads, s.width}).transpose(1, 2),
          random({s.rows, s.length, s.kv_heads, s.value_width}).transpose(1, 2)};
}

std::shared_ptr<nn::Parameter> make_sinks(int64_t heads, at::ScalarType type) {
  auto sinks = std::make_shared<nn::Parameter>(std::vector<int64_t>{heads}, nn::Init::normal(0, 1));
  sinks->set_name("sinks");
  sinks->materialize(c10::kCPU, type, 5);
  return sinks;
}

}  // namespace titan::attention_test
