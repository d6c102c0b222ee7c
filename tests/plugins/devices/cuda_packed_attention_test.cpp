// Attention within documents as a GPU runs it. ATen's kernel for sequences of different lengths
// exists only on GPUs. A stand-in written from its documentation runs on the CPU: softmax of each
// sequence's scores, composed of ATen's operations, with sequences separated by the given
// cumulative lengths.
#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_flash_attention_forward_ops.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <titan/ops/document_attention.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>

#include "plugins/devices/cuda/composite_ops.h"
#include "tests/sdk/ops/ops_testing.h"

namespace titan::ops::testing {
namespace {

using composite::AttentionPath;
using OptionalTensor = std::optional<Tensor>;

int num_calls = 0;

/// (heads, n, hd) of the tokens of a sequence; key heads once per query head.
Tensor sequence(const Tensor& x, int64_t first, int64_t end, int64_t heads) {
  return x.narrow(0, first, end - first).transpose(0, 1).repeat_interleave(heads / x.size(1), 0);
}

struct Answer {
  Tensor out, logsumexp;  // (n, heads, hd), (heads, n)
};

Answer answer(const Tensor& q, const Tensor& k, const Tensor& v, bool causal, double scale) {
  Tensor scores = at::matmul(q, k.transpose(1, 2)) * scale;
  if (causal) {
    const Tensor future = at::ones({q.size(1), k.size(1)}, at::kBool).triu(1);
    scores = scores.masked_fill(future, -INFINITY);
  }
  return {at::matmul(at::softmax(scores, -1), v).transpose(0, 1), at::logsumexp(scores, {-1})};
}

/// Begins of the sequences. Checks the documented form: int32 cumulative lengths from 0, the
/// longest sequence, the number of tokens.
std::vector<int64_t> begins_of(const OptionalTensor& sums, const Tensor& q, int64_t longest) {
  ++num_calls;
  EXPECT_TRUE(sums && sums->scalar_type() == at::kInt && sums->is_contiguous());
  std::vector<int64_t> begins;
  int64_t seen = 0;
  for (int64_t i = 0; i < sums->size(0); ++i) {
    begins.push_back((*sums)[i].item<int64_t>());
    if (i > 0) seen = std::max(seen, begins[begins.size() - 1] - begins[begins.size() - 2]);
  }
  EXPECT_EQ(begins.front(), 0);
  EXPECT_EQ(begins.back(), q.size(0));
  EXPECT_EQ(longest, seen);
  EXPECT_EQ(q.stride(-1), 1);
  return begins;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_forward(
    const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor& sums_q,
    const OptionalTensor& sums_k, c10::SymInt max_q, c10::SymInt max_k, double dropout, bool causal,
    std::optional<double> scale) {
  EXPECT_EQ(dropout, 0);
  const std::vector<int64_t> begins = begins_of(sums_q, q, max_q.expect_int());
  EXPECT_EQ(begins_of(sums_k, k, max_k.expect_int()), begins);
  const int64_t heads = q.size(1);
  std::vector<Tensor> outs, logsumexps;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    const Answer a = answer(sequence(q, begins[i], begins[i + 1], heads),
                            sequence(k, begins[i], begins[i + 1], heads),
                            sequence(v, begins[i], begins[i + 1], heads), causal, *scale);
    outs.push_back(a.out), logsumexps.push_back(a.logsumexp);
  }
  const Tensor none = at::empty({0});
  return {at::cat(outs, 0), at::cat(logsumexps, 1), none, none, none};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(
    const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
    const Tensor& logsumexp, const Tensor& sums_q, const Tensor& sums_k, c10::SymInt max_q,
    c10::SymInt max_k, double dropout, bool causal, const Tensor&, const Tensor&,
    std::optional<double> scale, std::optional<c10::SymInt>, std::optional<c10::SymInt>) {
  EXPECT_EQ(out.sizes(), q.sizes());
  EXPECT_EQ(logsumexp.sizes(), at::IntArrayRef({q.size(1), q.size(0)}));
  const at::AutoGradMode with_graph(true);
  const Tensors in = {q.detach().requires_grad_(), k.detach().requires_grad_(),
                      v.detach().requires_grad_()};
  const c10::impl::ForceDispatchKeyGuard recorded(c10::default_included_set,
                                                  c10::default_excluded_set);
  const Tensor again = std::get<0>(
      flash_forward(in[0], in[1], in[2], sums_q, sums_k, max_q, max_k, dropout, causal, scale));
  const Tensors grads = torch::autograd::grad({again}, in, {dout});
  return {grads[0], grads[1], grads[2]};
}

/// flash_forward with exactly the operation's parameters. Later versions of LibTorch append
/// parameters to those that flash_forward reads.
template <class Schema>
struct FlashForward;
template <class Result, class... Parameters>
struct FlashForward<Result(Parameters...)> {
  static Result call(Parameters... parameters) {
    const auto all = std::forward_as_tuple(parameters...);
    using std::get;
    return flash_forward(get<0>(all), get<1>(all), get<2>(all), get<3>(all), get<4>(all),
                         get<5>(all), get<6>(all), get<7>(all), get<8>(all), get<10>(all));
  }
};

TORCH_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("_flash_attention_forward",
         TORCH_FN(FlashForward<at::_ops::_flash_attention_forward::schema>::call));
  m.impl("_flash_attention_backward", TORCH_FN(flash_backward));
}

struct Packed {
  Tensor q, k, v, dout, documents;
  std::vector<int64_t> lengths;
};

/// Two rows of 12 tokens, as views of the storage that layers use.
Packed some(at::ScalarType type) {
  const auto heads = [&](int64_t count) { return random({2, 12, count, 8}, type).transpose(1, 2); };
  const Tensor documents = at::tensor({0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3, 3,  //
                                       7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8},
                                      at::kInt)
                               .view({2, 12});
  return {heads(4), heads(2), heads(2), heads(4), documents, {3, 1, 5, 3, 7, 5}};
}

Tensor by_tokens(const Tensor& heads) {
  return heads.transpose(1, 2).reshape({24, heads.size(1), heads.size(3)});
}

TEST(CudaPackedAttention, GivesTheFlashKernelAllDocumentsAtOnce) {
  const Packed x = some(at::kDouble);
  const Tensors in = leaves({x.q, x.k, x.v}, at::kDouble);
  const Tensor own = document_attention(in[0], in[1], in[2], x.documents, {.scale = 0.3});
  const Tensors grads = torch::autograd::grad({own}, in, {x.dout});

  const at::NoGradGuard no_grad;
  const Tensor q = by_tokens(x.q), k = by_tokens(x.k), v = by_tokens(x.v);
  for (const AttentionPath path : {AttentionPath::flash, AttentionPath::math}) {
    num_calls = 0;
    const auto [out, logsumexp] =
        composite::packed_attention_forward(path, q, k, v, x.lengths, true, 0.3);
    const auto [dq, dk, dv] = composite::packed_attention_backward(
        path, by_tokens(x.dout), q, k, v, out, logsumexp, x.lengths, true, 0.3);
    EXPECT_EQ(num_calls, path == AttentionPath::flash ? 4 : 0);  // lengths of q and k, twice
    const Tensors found = {out, dq, dk, dv},
                  expected = {own.detach(), grads[0], grads[1], grads[2]};
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(found[i].is_contiguous());
      EXPECT_LE(max_error(found[i], by_tokens(expected[i])), 1e-13) << i;
    }
  }
}

TEST(CudaPackedAttention, CopiesWhatTheKernelCannotReadInPlace) {
  const Packed x = some(at::kDouble);
  const at::NoGradGuard no_grad;
  const auto strided = [](const Tensor& tokens) {
    return at::empty({tokens.size(0), tokens.size(2), tokens.size(1)}, tokens.options())
        .transpose(1, 2)
        .copy_(tokens);
  };
  const Tensor q = by_tokens(x.q), k = by_tokens(x.k), v = by_tokens(x.v);
  const auto [out, logsumexp] =
      composite::packed_attention_forward(AttentionPath::flash, q, k, v, x.lengths, true, 0.3);
  const auto [same, again] = composite::packed_attention_forward(
      AttentionPath::flash, strided(q), strided(k), strided(v), x.lengths, true, 0.3);
  EXPECT_TRUE(same.equal(out));
}

}  // namespace
}  // namespace titan::ops::testing
