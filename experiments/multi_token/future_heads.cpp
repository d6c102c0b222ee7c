#include "future_heads.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <titan/error.h>
#include <titan/models/transformer_block.h>
#include <titan/nn/auxiliary_loss.h>

namespace multi_token {

using namespace titan;  // NOLINT: small
using at::Tensor;

namespace {

models::BlockOptions block_of(const models::Transformer& t) {
  const nn::Init input = nn::Init::truncated_normal(0, 0.02);
  const nn::Init output =
      nn::Init::truncated_normal(0, 0.02 / std::sqrt(2.0 * static_cast<double>(t.n_layers)));
  return {.dim = t.dim,
          .attention = {.dim = t.dim,
                        .num_heads = t.n_heads,
                        .num_kv_heads = t.n_kv_heads,
                        .head_dim = t.head_dim,
                        .input_init = input,
                        .output_init = output},
          .feed_forward = {.dim = t.dim,
                           .hidden_dim = t.ffn_dim,
                           .gate_init = input,
                           .output_init = output},
          .norm_eps = t.norm_eps};
}

nn::OutputHeadOptions head_of(const models::Transformer& t) {
  const double std = 1 / std::sqrt(static_cast<double>(t.dim));
  return {.dim = t.dim,
          .vocab_size = t.vocab_size,
          .norm_eps = t.norm_eps,
          .init = nn::Init::truncated_normal(0, std, -3 * std, 3 * std)};
}

/// The labels `k` places later in the row, within the same document.
Tensor later_labels(const Batch& batch, int64_t k) {
  const auto shifted = [k](const Tensor& x, double fill) {  // (rows, S)
    return at::constant_pad_nd(x.narrow(1, k, x.size(1) - k), {0, k}, fill);
  };
  const Tensor labels = shifted(batch.labels, Batch::kIgnoredLabel);
  if (!batch.documents.defined()) return labels;
  const Tensor other = shifted(batch.documents, -1).ne(batch.documents).to(labels.device());
  return labels.masked_fill(other, Batch::kIgnoredLabel);
}

}  // namespace

FutureHeads::FutureHeads(const models::Transformer& network, const FutureOptions& options)
    : weight_(options.weight),
      head_(add_module("head", std::make_unique<nn::OutputHead>(head_of(network)))) {
  const auto rope = std::make_shared<nn::Rope>(network.head_dim, network.rope);
  for (int64_t k = 0; k < options.count; ++k)
    blocks_.push_back(&add_module("future." + std::to_string(k),
                                  std::make_unique<models::TransformerBlock>(block_of(network), rope)));
}

Tensor FutureHeads::forward(const Tensor& x, const Batch& batch) {
  if (batch.labels.defined()) {
    const bool trains = batch.auxiliary_losses && at::GradMode::is_enabled();
    if (blocks_.empty() || !trains) return head_(x, batch);
    Batch counted = batch;  // the loss is of all tokens, on each rank of tensor parallelism
    counted.copies = {.num_ranks = batch.copies.num_ranks * batch.places.part.count};
    return head_(nn::with_auxiliary_loss(x, future_loss(x, batch), counted), batch);
  }
  if (!is_drafting_) {
    if (keeps_) input_ = x;
    return head_(x, batch);
  }
  std::vector<Tensor> logits;
  for (nn::Module* block : blocks_) logits.push_back(head_((*block)(x, batch), batch));
  return at::cat(logits, 1);
}

Tensor FutureHeads::draft(const Batch& batch) {
  is_drafting_ = true;
  // as a call of the layer, so that its wrappers run
  const Tensor logits = (*this)(input_.narrow(1, 0, batch.tokens.size(1)), batch);
  is_drafting_ = false;
  return logits;
}

Tensor FutureHeads::future_loss(const Tensor& x, const Batch& batch) {
  TITAN_CHECK(batch.places.row_length == 0, config,
              "maintainers/multi_token reads labels of later tokens, which other ranks hold when "
              "sequences are split; set parallelism.context_parallel_degree = 1");
  TITAN_CHECK(!head_.loss(), config, "maintainers/multi_token trains with cross entropy; leave out ",
              "loss.name");
  Tensor sum;
  for (size_t k = 0; k < blocks_.size(); ++k) {
    Batch later = batch;
    later.labels = later_labels(batch, static_cast<int64_t>(k) + 1);
    const Tensor loss = head_((*blocks_[k])(x, batch), later);
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum * (weight_ / static_cast<double>(blocks_.size()));
}

}  // namespace multi_token
