// Loss @FULL_NAME@. As generated, it is the focal loss: the sum of -(1 - p)^gamma log p.
// p: probability of the label. Lin et al., 2017. Select it with [loss] name = "@FULL_NAME@".
#include <string>
#include <vector>

#include <titan/loss.h>
#include <titan/plugin.h>

namespace {

struct @CLASS@Options {
  double gamma = 2;  // 0: cross entropy
};

class @CLASS@ final : public titan::Loss {
 public:
  @CLASS@(const @CLASS@Options& options, titan::LossContext) : options_(options) {}

  std::vector<std::string> part_names() const override { return {kNegativeLogLikelihood}; }

  titan::RowsLoss of_rows(const at::Tensor& logits, const at::Tensor& labels) override {
    const at::Tensor ignored = labels.eq(titan::Batch::kIgnoredLabel);  // (n)
    const at::Tensor index = labels.masked_fill(ignored, 0).unsqueeze(1);
    const at::Tensor log_p = logits.log_softmax(1).gather(1, index).squeeze(1);
    const at::Tensor focal = log_p.expm1().neg().pow(options_.gamma).mul(log_p);  // (1 - p)^gamma log p
    const auto sum = [&](const at::Tensor& of_rows) { return of_rows.masked_fill(ignored, 0).sum(at::kDouble); };
    return {.sum = -sum(focal), .parts = {-sum(log_p)}};
  }

 private:
  @CLASS@Options options_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "The focal loss.")
      .option("gamma", &@CLASS@Options::gamma, "Larger values reduce the weight of well-predicted tokens").at_least(0);
}
