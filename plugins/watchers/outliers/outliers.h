// Skips a step whose loss or gradient norm is far above those of earlier steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/watcher.h>
#include <titan/watcher_state.h>

#include "rule.h"

namespace titan::outliers {

/// Judges the loss of the global batch and the gradient norm, so that all ranks agree and every
/// layout gives the same verdict up to rounding.
///
/// A skipped step leaves weights, moments and the window as they were; it counts, and its data are
/// consumed (Verdict::skip). Steps whose gradients overflow float16 are left to the loss scaler.
class Outliers final : public Watcher, public StepMember, public WatcherState {
 public:
  Outliers(const Options& options, const WatcherContext& context);

  std::vector<StepMember*> members() override { return {this}; }
  bool looks_into_layers() const override { return false; }
  void start(const WatcherStart& start) override { executor_ = &start.executor; }
  void report(int64_t step) override;
  bool validates(int64_t step) const override { return !skipped_rows_.empty() && step > 0; }
  /// Names the rows of the skipped step that have the greatest losses.
  void validate(int64_t step) override;

  void reduced(Step& step) override;
  Judgement judge(const Step& step) override;
  void commit(const Step& step) override;
  void skip(const Step& step) override;

  Value state() const override;
  void restore(const Value& state) override;

 private:
  /// Numbers of the first run of a step, which is run again.
  struct Before {
    int64_t step = 0;
    double loss = 0;
    std::optional<double> norm;
  };

  bool is_left_to_loss_scaler(const Step& step) const;
  /// What is wrong with this attempt; empty: nothing.
  std::string fault_of(const Step& step) const;
  Judgement judge_again(const Step& step, const std::string& fault);
  std::string on_first_rank(std::string text) const;

  Options options_;
  WatcherContext context_;
  StepExecutor* executor_ = nullptr;
  Series losses_, norms_;
  int64_t num_skipped_ = 0;  // of the run
  int64_t num_in_row_ = 0;   // skipped steps right before this one
  double loss_ = 0;          // of the global batch, of this attempt
  std::optional<Before> before_;
  bool skips_ = false;               // this attempt, by the verdict of this watcher
  std::vector<Batch> skipped_rows_;  // microbatches of a step that was just skipped
  std::vector<Scalar> to_log_;       // of a step that was just skipped
};

}  // namespace titan::outliers
