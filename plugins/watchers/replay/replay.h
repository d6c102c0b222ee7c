// Runs forward and backward of some steps again, and compares the bits: a search for hardware that
// computes wrong results without an error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/watcher.h>
#include <titan/watcher_state.h>

#include "faults.h"
#include "run_bits.h"

namespace titan::replay {

struct Options {
  int64_t interval = 100;
  int64_t lasting = 2;
  int64_t attempts = 3;
  bool exchange = false;
  bool end = false;
  int64_t compare_weights_every = 0;
};

/// In every `interval`-th step, and in every step that is repeated, the microbatches run twice. If
/// the bits differ on any rank, they run a third time on all ranks, and the step is repeated.
///
/// A device that computes the same wrong bits each time shows only with `exchange`: each rank also
/// runs the microbatches of its neighbour.
///
/// It compares the outputs of layers, the loss, and the gradients of this rank before they are
/// summed over data-parallel ranks. A fault in one replica is therefore seen on its rank alone.
/// Ranks that exchange activations (tensor, pipeline, context and expert parallelism) see it
/// together.
class Replay final : public Watcher,
                     public ExecutorWrapper,
                     public StepMember,
                     public WatcherState {
 public:
  Replay(const Options& options, const WatcherContext& context);

  void match(ModelPart& whole) override { recorder_.watch_gradients(whole); }
  void attach(ModelPart& part) override;
  std::vector<StepMember*> members() override { return {this}; }
  ExecutorWrapper* wrapper() override { return this; }
  void start(const WatcherStart& start) override;
  void report(int64_t step) override;
  bool validates(int64_t step) const override;
  /// Compares the copies of weights. data Error: some differ.
  void validate(int64_t step) override;

  bool undoes_steps() const override { return true; }
  StepLoss forward_backward(const StepBatches& batches) override;

  void begin(Step& step) override;
  Judgement judge(const Step& step) override;
  void commit(const Step& step) override { settle(step); }
  void skip(const Step& step) override { settle(step); }
  void abort(const Step& step) override { say_rest(step); }

  Value state() const override { return counts_.state(); }
  void restore(const Value& state) override { counts_.restore(state); }

 private:
  class Draws;
  std::vector<Finding> look_again(const RunBits& first, const RunBits& second,
                                  const RunBits& third) const;
  std::vector<Finding> look_at_exchanged(const RunBits& own, const RunBits& other) const;
  StepLoss run_again(const StepBatches& batches, const Draws& draws, RunBits& bits);
  /// `own` of every rank.
  std::vector<std::vector<int64_t>> gather(const std::vector<int64_t>& own) const;
  std::string text_of(size_t rank, const Finding& finding) const;
  std::string text_of_findings(const Step& step) const;
  bool has_lasting() const;
  void say_rest(const Step& step);
  void settle(const Step& step);

  Options options_;
  WatcherContext context_;
  ModelPart* part_ = nullptr;
  Recorder recorder_;
  FaultCounts counts_;
  bool replays_ = false;             // this attempt
  bool has_fault_ = false;           // some rank differed in this step
  bool is_said_ = false;             // the findings of this attempt are the reason of its verdict
  bool is_to_end_ = false;           // a stop was requested
  std::vector<Finding> findings_;    // of this attempt, by rank; empty: nothing differs
  int64_t last_equal_ = 0;           // the last step whose weights were compared
  double start_ = 0, replayed_ = 0;  // seconds: start of the run, sum of the further runs
};

}  // namespace titan::replay
