#include "pairs.h"

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <titan/error.h>

namespace titan::losses {

using at::Tensor;

void require_documents(const Batch& batch) {
  TITAN_CHECK(
      batch.documents.defined(), data,
      "pairs of answers are neighbouring documents of a row, but this batch does not separate "
      "documents; set data.isolate_documents = true");
}

/// Uses one mask per document: an indexed sum is not deterministic on a GPU.
PairSums sums_of_pairs(const Tensor& values, const Batch& batch) {
  require_documents(batch);
  const int64_t rows = values.size(0);
  const int64_t num_documents = batch.documents.max().item<int64_t>() + 1;
  const int64_t pairs = (num_documents + 1) / 2;
  const Tensor numbers = at::arange(2 * pairs, at::TensorOptions(at::kInt)).view({1, -1, 1});
  const Tensor is_of = batch.documents.unsqueeze(1).eq(numbers).to(values.device());
  const auto sums = [&](const Tensor& of_tokens) {  // (rows, seq_len) -> (rows, pairs, 2)
    return (of_tokens.unsqueeze(1) * is_of)
        .sum(2, /*keepdim=*/false, at::kDouble)
        .view({rows, pairs, 2});
  };
  const Tensor has_target = batch.labels.ne(Batch::kIgnoredLabel).to(values.scalar_type());
  return {sums(values), sums(has_target)};
}

int64_t num_pairs(const Batch& batch) {
  require_documents(batch);
  const Tensor labels = batch.labels.contiguous(), documents = batch.documents.contiguous();
  const int64_t* label = labels.const_data_ptr<int64_t>();
  const int32_t* document = documents.const_data_ptr<int32_t>();
  const int64_t rows = labels.size(0), seq_len = labels.size(1);
  int64_t pairs = 0;
  std::vector<bool> has_target;  // by document
  for (int64_t row = 0; row < rows; ++row) {
    has_target.assign(static_cast<size_t>(seq_len + 2), false);
    for (int64_t i = row * seq_len; i < (row + 1) * seq_len; ++i)
      if (label[i] != Batch::kIgnoredLabel) has_target[static_cast<size_t>(document[i])] = true;
    for (size_t chosen = 0; chosen + 1 < has_target.size(); chosen += 2) {
      const bool has_chosen = has_target[chosen], has_rejected = has_target[chosen + 1];
      TITAN_CHECK(has_chosen == has_rejected, data, "row ", row, " of a batch holds a ",
                  has_chosen ? "chosen" : "rejected", " answer as document ",
                  has_chosen ? chosen : chosen + 1, " but no tokens with a target of the ",
                  has_chosen ? "rejected" : "chosen",
                  " one next to it; use preference data, and data.packing = \"best_fit\" with a "
                  "training.seq_len that holds both answers");
      pairs += has_chosen;
    }
  }
  return pairs;
}

}  // namespace titan::losses
