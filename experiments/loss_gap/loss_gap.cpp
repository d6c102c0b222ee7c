// titan maintainers/loss_gap RUN RUN: the steps at which the losses of two runs differ most.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>
#include <titan/runs/series.h>

struct LossGapOptions {
  std::string tag = "loss_metrics/global_avg_loss";
  int64_t most = 5;
};

class LossGap final : public titan::Command {
 public:
  static constexpr titan::CommandWords kWords{"RUN RUN", 2, 2};

  LossGap(const LossGapOptions& options, const titan::CommandContext& context)
      : options_(options), runs_(context.words) {}

  int run() override {
    const titan::Series a = series_of(runs_[0]), b = series_of(runs_[1]);
    std::vector<std::pair<double, int64_t>> gaps;
    for (size_t i = 0, j = 0; i < a.steps.size() && j < b.steps.size();) {
      if (a.steps[i] == b.steps[j]) gaps.emplace_back(b.values[j] - a.values[i], a.steps[i]);
      const int64_t step = std::min(a.steps[i], b.steps[j]);
      i += a.steps[i] == step;
      j += b.steps[j] == step;
    }
    TITAN_CHECK(!gaps.empty(), data, "the runs have no step in common");
    std::stable_sort(gaps.begin(), gaps.end(), [](const auto& x, const auto& y) { return std::abs(x.first) > std::abs(y.first); });
    gaps.resize(std::min(gaps.size(), static_cast<size_t>(options_.most)));
    for (const auto& [gap, step] : gaps) titan::print("step " + std::to_string(step) + ": " + titan::to_json(titan::Value(gap)) + "\n");
    return titan::kExitDone;
  }

 private:
  titan::Series series_of(const std::string& run) const {
    const titan::Metrics metrics = titan::read_metrics(run);
    const auto found = metrics.series.find(options_.tag);
    TITAN_CHECK(found != metrics.series.end(), data, "'", run, "' has no scalar '", options_.tag, "' in metrics.jsonl");
    return found->second;
  }

  LossGapOptions options_;
  std::vector<std::string> runs_;
};

TITAN_PLUGIN(plugin) {
  plugin.add<LossGap>("maintainers/loss_gap", "the steps at which two runs are furthest apart")
      .option("tag", &LossGapOptions::tag, "scalar to compare")
      .option("most", &LossGapOptions::most, "number of steps to show")
      .at_least(1);
}
