#include "head_kernel.h"

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <titan/batch.h>
#include <titan/dist/collectives.h>
#include <titan/ops/chunked_loss.h>
#include <titan/ops/linear.h>

namespace titan::tensor_parallel {
namespace {

using at::Tensor;

/// Bytes of logits per chunk. Each chunk costs a collective, so chunks are larger than without
/// tensor parallelism.
constexpr int64_t kLogitsBytes = int64_t{32} << 20;

/// Positions of the labels of a chunk in this rank's vocabulary range.
struct Targets {
  Tensor ignored;  ///< bool (n)
  Tensor index;    ///< (n, 1); arbitrary where is_own is false
  Tensor is_own;   ///< bool (n)
};

Targets locate(const Tensor& labels, const VocabRange& range) {
  const Tensor ignored = labels.eq(Batch::kIgnoredLabel);
  // an ignored label is replaced by this rank's first token until is_own excludes it
  const VocabRange::Local local = range.local(labels.masked_fill(ignored, range.first));
  return {ignored, local.index.unsqueeze(1), (local.is_foreign | ignored).bitwise_not()};
}

/// softmax -> softmax - onehot
void subtract_onehot(const Tensor& softmax, const Targets& targets) {
  const Tensor one = targets.is_own.to(softmax.scalar_type()).unsqueeze(1);
  softmax.scatter_(1, targets.index, softmax.gather(1, targets.index) - one);
}

/// Log-sum-exp over the whole vocabulary from each rank's maximum, sum of exponentials and logit of
/// the label, combined in rank order.
Tensor loss_of_local_logits(const Tensor& logits, const Targets& targets, bool gradient,
                            const dist::Group& group) {
  const Tensor max = logits.amax(1);
  const Tensor at_label =
      logits.gather(1, targets.index).squeeze(1).masked_fill_(targets.is_own.bitwise_not(), 0);
  logits.sub_(max.unsqueeze(1)).exp_();
  const Tensor own = at::stack({max, logits.sum(1), at_label});
  const Tensor all = at::empty({group.size(), 3, logits.size(0)}, own.options());
  group.all_gather(all, own).wait();

  const Tensor maxima = all.select(1, 0), sums = all.select(1, 1);
  const Tensor highest = maxima.amax(0);
  const Tensor total = (sums * (maxima - highest).exp_()).sum(0);
  const Tensor losses = highest + total.log() - all.select(1, 2).sum(0);
  if (gradient) {
    const Tensor factor = (max - highest).exp_().div_(total).masked_fill_(targets.ignored, 0);
    logits.mul_(factor.unsqueeze(1));
    subtract_onehot(logits, targets);
  }
  return losses.masked_fill(targets.ignored, 0).sum(at::kDouble);
}

/// The same from logits over the whole vocabulary; only local ones are kept for the gradient.
Tensor loss_of_whole_logits(const Tensor& logits, const Tensor& whole, const Tensor& labels,
                            const Targets& targets, bool gradient) {
  const Tensor max = whole.amax(1, /*keepdim=*/true);
  const Tensor log_sum = (whole - max).exp_().sum(1).log_().add_(max.squeeze(1));
  const Tensor index = labels.masked_fill(targets.ignored, 0).unsqueeze(1);
  const Tensor losses = log_sum - whole.gather(1, index).squeeze(1);
  if (gradient) {
    logits.sub_(log_sum.unsqueeze(1)).exp_();
    logits.masked_fill_(targets.ignored.unsqueeze(1), 0);
    subtract_onehot(logits, targets);
  }
  return losses.masked_fill(targets.ignored, 0).sum(at::kDouble);
}

class CutVocabulary : public nn::HeadKernel {
 public:
  CutVocabulary(const VocabRange& range, const dist::Group& group) : range_(range), group_(group) {}

  Tensor logits(const Tensor& x, nn::Parameter& weight) override {
    return dist::all_gather_replicated(ops::linear(x, weight.value()), -1, group_, range_.full);
  }

  /// Gathers the columns of each chunk; every rank computes the same loss and keeps the gradient of
  /// its own columns. N · V numbers are communicated, as for GatheredLogits.
  Tensor loss_sum_by(const ops::ChunkLoss& loss, const Tensor& x, nn::Parameter& weight,
                     const Tensor& labels) override {
    const auto of_columns = [&, type = x.scalar_type()](const Tensor& logits,
                                                        const Tensor& of_chunk, bool gradient) {
      const Tensor all = whole(logits, type);
      const Tensor sum = loss(all, of_chunk, gradient);
      if (gradient) logits.copy_(all.narrow(1, range_.first, range_.size));
      return sum;
    };
    return chunked(x, weight, labels, range_.full, of_columns);
  }

 protected:
  /// Logits over the whole vocabulary. They were computed in `type`, so this cast loses nothing.
  Tensor whole(const Tensor& logits, at::ScalarType type) const {
    return dist::all_gather_replicated(logits.to(type), 1, group_, range_.full)
        .to(logits.scalar_type());
  }

  static Tensor chunked(const Tensor& x, nn::Parameter& weight, const Tensor& labels,
                        int64_t num_words, const ops::ChunkLoss& chunk_loss) {
    return ops::chunked_loss(x, weight.value(), labels,
                             ops::chunk_rows(x.size(0), num_words, kLogitsBytes), chunk_loss);
  }

  VocabRange range_;
  dist::Group group_;
};

class LossParallel final : public CutVocabulary {
 public:
  using CutVocabulary::CutVocabulary;

  Tensor loss_sum(const Tensor& x, nn::Parameter& weight, const Tensor& labels) override {
    ops::check_labels(labels, range_.full);
    const auto chunk_loss = [this](const Tensor& logits, const Tensor& of_chunk, bool gradient) {
      return loss_of_local_logits(logits, locate(of_chunk, range_), gradient, group_);
    };
    return chunked(x, weight, labels, range_.largest, chunk_loss);
  }
};

class GatheredLogits final : public CutVocabulary {
 public:
  using CutVocabulary::CutVocabulary;

  Tensor loss_sum(const Tensor& x, nn::Parameter& weight, const Tensor& labels) override {
    ops::check_labels(labels, range_.full);
    const auto chunk_loss = [this, type = x.scalar_type()](const Tensor& logits,
                                                           const Tensor& of_chunk, bool gradient) {
      return loss_of_whole_logits(logits, whole(logits, type), of_chunk, locate(of_chunk, range_),
                                  gradient);
    };
    return chunked(x, weight, labels, range_.full, chunk_loss);
  }
};

}  // namespace

std::unique_ptr<nn::HeadKernel> make_loss_parallel_kernel(const VocabRange& range,
                                                          const dist::Group& group) {
  return std::make_unique<LossParallel>(range, group);
}

std::unique_ptr<nn::HeadKernel> make_gathered_kernel(const VocabRange& range,
                                                     const dist::Group& group) {
  return std::make_unique<GatheredLogits>(range, group);
}

}  // namespace titan::tensor_parallel
