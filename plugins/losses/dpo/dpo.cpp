#include "dpo.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/zeros_like.h>
#include <titan/error.h>

#include "pairs.h"

namespace titan::losses {

using at::Tensor;

/// The meta device lacks ATen's log_sigmoid. In float64 softplus(x) equals x above the threshold.
static Tensor log_sigmoid(const Tensor& x) {
  return -at::softplus(-x, /*beta=*/1, /*threshold=*/50);
}

Dpo::Dpo(const DpoOptions& options, LossContext) : options_(options) {
  TITAN_CHECK(options.label_smoothing == 0 || options.variant == DpoVariant::sigmoid, config,
              "option 'label_smoothing' = ", options.label_smoothing,
              " works with variant = \"sigmoid\" only; leave out one of them");
}

std::vector<std::string> Dpo::part_names() const {
  return {"rewards/chosen",     "rewards/rejected", "rewards/margins",
          "rewards/accuracies", "logps/chosen",     "logps/rejected"};
}

ReferenceOutput Dpo::reference_output() const {
  return options_.reference_free ? ReferenceOutput::none : ReferenceOutput::log_likelihoods;
}

int64_t Dpo::num_terms(const Batch& batch) const {
  return num_pairs(batch);
}

Tensor Dpo::of_differences(const Tensor& difference) const {
  const Tensor scaled = options_.beta * difference;
  switch (options_.variant) {
    case DpoVariant::ipo:
      return (difference - 1 / (2 * options_.beta)).square();
    case DpoVariant::hinge:
      return (1 - scaled).clamp_min(0);
    case DpoVariant::sigmoid:
      break;
  }
  const double e = options_.label_smoothing;
  const Tensor loss = (e - 1) * log_sigmoid(scaled);
  return e == 0 ? loss : loss - e * log_sigmoid(-scaled);
}

RowsLoss Dpo::of_sequences(const Tensor& log_likelihoods, const Batch& batch) {
  const PairSums policy = sums_of_pairs(log_likelihoods, batch);
  const Tensor counts = policy.counts.clamp_min(1);
  const auto measured = [&](const Tensor& sums) {  // (rows, pairs, 2)
    return options_.variant == DpoVariant::ipo ? sums / counts : sums;
  };
  const Tensor own = measured(policy.sums);
  const Tensor theirs = options_.reference_free
                            ? at::zeros_like(own)
                            : measured(sums_of_pairs(batch.reference, batch).sums);
  const Tensor rewards = own - theirs;
  const auto chosen = [](const Tensor& both) { return both.select(2, 0); };
  const auto rejected = [](const Tensor& both) { return both.select(2, 1); };
  const Tensor is_pair = policy.counts.amin(2).gt(0);
  const auto over_pairs = [&](const Tensor& of_pairs) {
    return of_pairs.masked_fill(is_pair.bitwise_not(), 0).sum(at::kDouble);
  };

  const Tensor difference = chosen(rewards) - rejected(rewards);
  Tensor loss = of_differences(difference);
  if (options_.rpo_alpha > 0)
    loss = loss - options_.rpo_alpha * chosen(policy.sums) / chosen(counts);
  const double beta = options_.beta;
  return {.sum = over_pairs(loss),
          .parts = {over_pairs(beta * chosen(rewards)), over_pairs(beta * rejected(rewards)),
                    over_pairs(beta * difference), over_pairs(difference.gt(0).to(at::kDouble)),
                    over_pairs(chosen(own)), over_pairs(rejected(own))}};
}

}  // namespace titan::losses
