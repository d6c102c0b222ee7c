#include "context_parallel.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include <titan/error.h>
#include <titan/nn/attention_layer.h>

#include "kernel.h"

namespace titan::context_parallel {
namespace {

/// visible_blocks searches document numbers by bisection.
void check_ascending(const at::Tensor& documents) {
  const at::Tensor numbers = documents.contiguous();
  const int64_t seq_len = numbers.size(1);
  const int32_t* const first = numbers.const_data_ptr<int32_t>();
  for (int64_t i = 1; i < numbers.numel(); ++i)
    TITAN_CHECK(i % seq_len == 0 || first[i - 1] <= first[i], data,
                "numbers of documents must ascend within a row, got ", first[i], " after ",
                first[i - 1], " (row ", i / seq_len, ", token ", i % seq_len, ")");
}

}  // namespace

ContextParallel::ContextParallel(const ContextParallelOptions& options, TransformContext context)
    : options_(options),
      cut_(context.mesh.group("cp").size(), options.load_balancer),
      rank_(context.mesh.group("cp").rank()) {}

void ContextParallel::apply(ModelPart& part, const TransformContext& context) {
  const dist::Group& group = context.mesh.group("cp");
  if (group.size() == 1) return;
  const std::shared_ptr<const Exchange> exchange = make_exchange(options_.rotate_method, group);
  bool has_attention = false;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    auto* attention = dynamic_cast<nn::AttentionLayer*>(&module);
    if (!attention) return;
    attention->core().set_kernel("context parallelism",
                                 make_kernel(cut_, rank_, exchange, attention->core().rule()),
                                 "'" + path + "'");
    has_attention = true;
  });
  TITAN_CHECK(
      has_attention || context.pipeline, config, "context parallelism over ", group.size(),
      " ranks found no attention layer: the model has no nn::AttentionLayer to exchange keys for; "
      "set parallelism.context_parallel_degree = 1");
}

Batch ContextParallel::split(const Batch& batch) const {
  if (cut_.num_ranks() == 1) return batch;
  const at::Tensor& whole = batch.tokens.defined() ? batch.tokens : batch.labels;
  TITAN_CHECK(whole.defined() && whole.dim() == 2, internal,
              "context parallelism cannot cut a batch without tokens and labels");
  cut_.check_length(whole.size(1));
  const auto share = [&](const at::Tensor& x) {
    return x.defined() ? cut_.share_of(rank_, x) : at::Tensor();
  };
  Batch part{.tokens = share(batch.tokens), .labels = share(batch.labels)};
  part.is_padding = share(batch.is_padding);
  const at::Tensor places =
      at::arange(whole.size(1), at::TensorOptions().dtype(at::kLong).device(whole.device()));
  part.places = {.first_row = batch.places.first_row,
                 .row_length = whole.size(1),
                 .in_row = share(places.unsqueeze(0)).squeeze(0)};
  if (batch.positions.defined()) {
    part.positions = share(batch.positions);
    part.num_positions = batch.num_positions;
  } else {
    part.num_positions = whole.size(1);
    part.positions = part.places.in_row.unsqueeze(0).expand({whole.size(0), -1});
  }
  if (batch.documents.defined()) {
    check_ascending(batch.documents);
    part.documents = cut_.in_rank_order(batch.documents);
  }
  return part;
}

}  // namespace titan::context_parallel
