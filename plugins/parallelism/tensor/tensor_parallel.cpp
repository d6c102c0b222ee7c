#include "tensor_parallel.h"

#include <algorithm>
#include <set>

#include <titan/dist/collectives.h>
#include <titan/log.h>

#include "async_region.h"
#include "cut_norm.h"
#include "head_kernel.h"
#include "partial_gradients.h"
#include "requirements.h"
#include "vocab_range.h"

namespace titan::tensor_parallel {
namespace {

constexpr int64_t kSequence = 1;  // dimension of (B, S, dim)

bool is_cut(const nn::Parameter& parameter, const dist::Group& group) {
  const auto& shardings = parameter.shardings();
  return std::any_of(shardings.begin(), shardings.end(),
                     [&](const nn::Sharding& sharding) { return sharding.group == group.name(); });
}

/// A weight that several modules share is cut once.
void cut(nn::Parameter& weight, int64_t dim, const dist::Group& group) {
  if (!is_cut(weight, group)) weight.shard_over(dim, group);
}

/// Sets in the batch of the layers below which tokens they have, and which ranks have copies.
void annotate_token_layout(nn::Module& module, const TokenPart& part, const TokenCopies& copies) {
  module.wrap([part, copies](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
    Batch annotated = batch;
    annotated.places.part = part;
    annotated.copies = copies;
    return next(x, annotated);
  });
}

}  // namespace

TensorParallel::TensorParallel(const TensorParallelOptions& options, TransformContext)
    : options_(options) {}

void TensorParallel::apply(ModelPart& part, const TransformContext& context) {
  const dist::Group& group = context.mesh.group("tp");
  if (group.size() == 1) return;
  const ModelLayout layout = read_layout(part);
  check_fits(layout, group.size());
  if (options_.async && !options_.sequence_parallel)
    log::warn(
        "async tensor parallelism overlaps the gathers of sequence parallelism, which is "
        "off: there is no overlap");
  else if (options_.async && !link_)
    link_ = std::make_shared<PieceLink>(group);
  cut_weights(layout, group);
  connect(layout, group);
  sum_gradients(part, layout, context);
  const bool cuts = options_.sequence_parallel;
  for (Layer& layer : part.layers()) {
    if (cuts)
      annotate_token_layout(*layer.module, {.number = group.rank(), .count = group.size()}, {});
    else  // outside of regions all ranks compute the same
      annotate_token_layout(*layer.module, {},
                            {.num_ranks = group.size(), .gradients_are_summed = false});
  }
  if (cuts) part.cut_sequence(group.size());
}

void TensorParallel::cut_weights(const ModelLayout& layout, const dist::Group& group) const {
  for (const auto& embedding : layout.embeddings) cut(embedding.module->weight(), 0, group);
  for (const auto& head : layout.heads) cut(head.module->weight(), 0, group);
  for (const RegionLayout& region : layout.regions) {
    for (nn::Linear* linear : region.columns) {
      cut(linear->weight(), 0, group);
      if (linear->bias()) cut(*linear->bias(), 0, group);
    }
    for (nn::Linear* linear : region.rows) cut(linear->weight(), 1, group);
  }
  for (const auto& attention : layout.attentions) {
    for (nn::Parameter* of_heads : attention.module->head_parameters()) cut(*of_heads, 0, group);
    for (nn::RmsNorm* norm : attention.module->head_norms()) cut(norm->weight(), 0, group);
  }
}

void TensorParallel::connect(const ModelLayout& layout, const dist::Group& group) {
  for (const auto& embedding : layout.embeddings)
    wrap_embedding(*embedding.module, VocabRange::of(embedding.module->weight(), group),
                   [group, cuts = options_.sequence_parallel](const at::Tensor& partial) {
                     return cuts ? dist::reduce_scatter(partial, kSequence, group)
                                 : dist::reduce_partial(partial, group);
                   });
  for (const RegionLayout& region : layout.regions) {
    annotate_token_layout(*region.module, {},
                          {.num_ranks = group.size(), .gradients_are_summed = true});
    wrap_region(region, group);
  }
  for (const auto& attention : layout.attentions)
    for (nn::RmsNorm* norm : attention.module->head_norms())
      norm->set_kernel("tensor parallelism", make_cut_norm(group));
  for (const auto& head : layout.heads) {
    const VocabRange range = VocabRange::of(head.module->weight(), group);
    head.module->set_kernel("tensor parallelism", options_.loss_parallel
                                                      ? make_loss_parallel_kernel(range, group)
                                                      : make_gathered_kernel(range, group));
    head.module->norm().wrap([group, gathers = options_.sequence_parallel](
                                 const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      const at::Tensor y = next(x, batch);
      return gathers ? dist::all_gather(y, kSequence, group) : dist::copy_to_ranks(y, group);
    });
  }
}

void TensorParallel::wrap_region(const RegionLayout& region, const dist::Group& group) {
  if (link_ && can_be_async(region)) {
    make_async(region, link_);
  } else if (options_.sequence_parallel) {
    region.module->wrap([group](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      return dist::reduce_scatter(next(dist::all_gather(x, kSequence, group), batch), kSequence,
                                  group);
    });
  } else {
    region.module->wrap([group](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      return dist::reduce_partial(next(dist::copy_to_ranks(x, group), batch), group);
    });
  }
}

void TensorParallel::sum_gradients(ModelPart& part, const ModelLayout& layout,
                                   const TransformContext& context) const {
  const dist::Group& group = context.mesh.group("tp");
  // within a region each rank computes with its own heads or features, whatever its input
  std::set<nn::Parameter*> in_regions;
  for (const RegionLayout& region : layout.regions)
    region.module->visit_parameters([&](nn::Parameter& p) { in_regions.insert(&p); });

  std::set<nn::Parameter*> seen;
  for (Layer& layer : part.layers()) {
    std::vector<nn::Parameter*> partial;
    layer.module->visit_parameters([&](nn::Parameter& parameter) {
      const bool is_partial = options_.sequence_parallel || in_regions.contains(&parameter);
      if (is_partial && !is_cut(parameter, group) && seen.insert(&parameter).second)
        partial.push_back(&parameter);
    });
    sum_partial_gradients(*layer.module, partial, context);
  }
}

}  // namespace titan::tensor_parallel
