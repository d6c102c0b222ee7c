// Losses with one defect each, named after the conformance test that must find it. `right` has
// none, `empty` does nothing.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>

#include <titan/loss.h>
#include <titan/plugin.h>

namespace {

enum class Fault {
  none,
  finite,
  parts,
  parts_count,
  likelihood_part,
  gradient,
  ignored_labels,
  adds_up,
  inputs_kept,
  inputs_kept_labels,
  meta_device,
  layouts,
  accumulation
};

// Focal loss: the sum of -(1 - p)^2 log p; p: probability of the label.
template <Fault fault>
class Focal final : public titan::Loss {
 public:
  explicit Focal(titan::LossContext) {}

  std::vector<std::string> part_names() const override {
    return {kNegativeLogLikelihood, "largest"};
  }

  titan::RowsLoss of_rows(const at::Tensor& logits, const at::Tensor& labels) override {
    if (fault == Fault::inputs_kept)
      logits.detach().sub_(logits.detach().amax(1, true));  // the softmax is the same
    if (fault == Fault::meta_device && logits.numel() > 0)
      last_ = logits.detach().flatten()[0].template item<double>();
    const at::Tensor ignored = labels.eq(titan::Batch::kIgnoredLabel);  // (n)
    if (fault == Fault::inputs_kept_labels) labels.masked_fill_(ignored, 0);
    const at::Tensor index = labels.masked_fill(ignored, 0).unsqueeze(1);
    const at::Tensor stable = logits.log_softmax(1).gather(1, index).squeeze(1);
    at::Tensor log_p = stable;
    if (fault == Fault::finite)
      log_p = logits.gather(1, index).squeeze(1) - logits.exp().sum(1).log();  // overflows
    at::Tensor weight = log_p.expm1().pow(2);
    if (fault == Fault::gradient) weight = weight.detach();
    at::Tensor focal = weight.mul(log_p);
    if (fault == Fault::adds_up && logits.size(0) == 1) focal = focal * 0.5;
    if (fault == Fault::layouts && is_second_rank()) focal = focal * 1.01;
    if (fault == Fault::accumulation && logits.size(0) > 7 && logits.size(0) <= kSmall)
      focal = focal * 1.01;
    const auto sum = [&](const at::Tensor& of_rows) {
      return of_rows.masked_fill(ignored, 0).sum(at::kDouble);
    };
    at::Tensor nll = -sum(stable);
    if (fault == Fault::likelihood_part) nll = nll / std::log(2.0);  // in bits
    at::Tensor largest = sum(logits.amax(1));
    if (fault == Fault::parts) largest = largest + std::numeric_limits<double>::infinity();
    std::vector<at::Tensor> parts = {nll, largest};
    if (fault == Fault::parts_count) parts.pop_back();
    return {.sum = fault == Fault::ignored_labels ? -focal.sum(at::kDouble) : -sum(focal),
            .parts = parts};
  }

 private:
  static constexpr int64_t kSmall = 64;
  static bool is_second_rank() {
    const char* rank = std::getenv("RANK");
    return rank && std::string(rank) == "1";
  }

  double last_ = 0;
};

class Empty final : public titan::Loss {
 public:
  explicit Empty(titan::LossContext) {}
  titan::RowsLoss of_rows(const at::Tensor& logits, const at::Tensor&) override {
    return {.sum = (logits * 0).sum(at::kDouble), .parts = {}};
  }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Focal<Fault::none>>("wrong/right", "The focal loss.");
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<Focal<Fault::finite>>("wrong/finite", "Overflows.");
  plugin.add<Focal<Fault::parts>>("wrong/parts", "Has an infinite part.");
  plugin.add<Focal<Fault::parts_count>>("wrong/parts.count", "Has fewer parts than names.");
  plugin.add<Focal<Fault::likelihood_part>>("wrong/likelihood_part", "Reports bits as nats.");
  plugin.add<Focal<Fault::gradient>>("wrong/gradient", "Leaves a factor out of the gradient.");
  plugin.add<Focal<Fault::ignored_labels>>("wrong/ignored_labels",
                                           "Counts tokens without a label.");
  plugin.add<Focal<Fault::adds_up>>("wrong/adds_up", "Halves the loss of a single token.");
  plugin.add<Focal<Fault::inputs_kept>>("wrong/inputs_kept",
                                        "Subtracts the largest logit in place.");
  plugin.add<Focal<Fault::inputs_kept_labels>>("wrong/inputs_kept.labels",
                                               "Overwrites ignored labels.");
  plugin.add<Focal<Fault::meta_device>>("wrong/meta_device", "Reads a value.");
  plugin.add<Focal<Fault::layouts>>("wrong/layouts", "Has another loss on rank 1.");
  plugin.add<Focal<Fault::accumulation>>("wrong/accumulation", "Has another loss for few rows.");
}
