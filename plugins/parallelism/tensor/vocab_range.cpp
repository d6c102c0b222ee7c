#include "vocab_range.h"

#include <utility>

#include <ATen/TensorOperators.h>

#include <titan/dist/chunk.h>
#include <titan/error.h>

namespace titan::tensor_parallel {
namespace {

void check_tokens(const at::Tensor& tokens, int64_t full) {
  if (!tokens.is_cpu()) return;
  const at::Tensor flat = tokens.contiguous();
  const int64_t* token = flat.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i)
    TITAN_CHECK(token[i] >= 0 && token[i] < full, data, "token ", token[i], " at index ", i,
                " is outside of the vocabulary of ", full);
}

}  // namespace

VocabRange VocabRange::of(const nn::Parameter& weight, const dist::Group& group) {
  const dist::Chunk chunk = dist::chunk_of(weight.global_shape()[0], group);
  return {.first = chunk.begin, .size = chunk.size, .full = chunk.full, .largest = chunk.largest};
}

VocabRange::Local VocabRange::local(const at::Tensor& ids) const {
  const at::Tensor is_before = ids.ge(0) & ids.lt(first);
  const at::Tensor is_behind = ids.ge(first + size) & ids.lt(full);
  const at::Tensor is_foreign = is_before | is_behind;
  return {(ids - first).masked_fill_(is_foreign, 0), is_foreign};
}

void wrap_embedding(nn::Embedding& embedding, const VocabRange& range,
                    std::function<at::Tensor(const at::Tensor&)> combine) {
  embedding.wrap([range, combine = std::move(combine)](const at::Tensor& x, const Batch& batch,
                                                       const nn::Next& next) {
    check_tokens(batch.tokens, range.full);
    const VocabRange::Local local = range.local(batch.tokens);
    Batch own = batch;
    own.tokens = local.index;
    return combine(next(x, own).masked_fill(local.is_foreign.unsqueeze(-1), 0));
  });
}

}  // namespace titan::tensor_parallel
