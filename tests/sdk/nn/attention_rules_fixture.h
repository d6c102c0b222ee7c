// Attention rules and their reference: a softmax over the whole matrix of scores with a mask,
// composed of ATen's operations. Used by the tests of rules and of models that use rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <titan/nn/attention_rules.h>

#include "tests/sdk/ops/ops_testing.h"

namespace titan::attention_test {

using at::Tensor;
using ops::testing::max_error;
using ops::testing::random;
using ops::testing::Tensors;
using RulePtr = std::shared_ptr<const nn::AttentionRule>;

/// Tolerance for results in double.
constexpr double kTolerance = 1e-12;

/// Visible keys: positions of queries (n, 1) and of keys (m) -> bool (n, m).
using Sight = std::function<Tensor(const Tensor& queries, const Tensor& keys)>;

/// The query's own token and all tokens before it.
Sight sees_all();
/// The last `size` tokens of those.
Sight sees_window(int64_t size);
/// Those in the same chunk of `size` tokens of the row.
Sight sees_chunk(int64_t size);

/// q (B, H, n, hd), k (B, KV, n, hd), v (B, KV, n, hdv) of tokens 0 ... n - 1 -> (B, H, n, hdv).
/// `documents` int32 (B, n), or undefined. `sinks` (H), or undefined: one more score of each query,
/// without a value. Uses ATen's autograd, in the dtype of q.
Tensor masked_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Sight& sight,
                        const Tensor& documents = {}, const Tensor& sinks = {});

/// A rule and its equivalent mask.
struct Ruled {
  std::string name;
  RulePtr rule;
  Sight sight;
};
Ruled window(int64_t size);
Ruled chunk(int64_t size);
/// Sizes for rows of `length` tokens: one token, some, all of them, more.
std::vector<Ruled> rules_for(int64_t length);

struct Shape {
  int64_t rows = 2, heads = 4, kv_heads = 2, length = 20, width = 8, value_width = 8;
};
/// q, k and v as layers have them: views of (B, n, heads, width).
Tensors inputs(const Shape& shape);

/// Sinks as in a layer, with values that affect the result.
std::shared_ptr<nn::Parameter> make_sinks(int64_t heads, at::ScalarType type = at::kDouble);

}  // namespace titan::attention_test
