// Repeats steps whose gradients are not reproduced bitwise, and repeats some others as a drill.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/transform.h>

namespace step_guard {

struct StepGuardOptions {
  bool runs_twice = true;    // compare each run of a step with a second one
  double drill_share = 0.1;  // share of steps that are discarded once
  int64_t seed = 0;          // selects these steps
};

/// Wraps the executor: runs each step twice and compares loss and gradients. Also a step member: it
/// requests a repeat if this rank saw a difference, or as a drill.
class StepGuard final : public titan::Parallelism,
                        public titan::ExecutorWrapper,
                        public titan::StepMember {
 public:
  StepGuard(const StepGuardOptions& options, titan::TransformContext) : options_(options) {}

  titan::Phase phase() const override { return titan::Phase::data; }
  void apply(titan::ModelPart& part, const titan::TransformContext&) override { part_ = &part; }
  bool undoes_steps() const override { return true; }

  titan::StepLoss forward_backward(const titan::StepBatches& batches) override;
  titan::Judgement judge(const titan::Step& step) override;

  /// Whether step `number` is discarded once: the same on all ranks and in every run.
  bool is_drill(int64_t number) const;

 private:
  StepGuardOptions options_;
  titan::ModelPart* part_ = nullptr;
  std::string difference_;  // between the two runs; empty: none
};

}  // namespace step_guard
