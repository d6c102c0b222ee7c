// A module that does work around each training step, such as counters or a bias that is updated
// from them. Used by authors of layers.
#pragma once

#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/step.h>

namespace titan::nn {

/// A Module that also derives from this takes part in every step (StepMember), on each rank that
/// has it, in the model's order; a replaced module does not. It changes its states
/// (Module::add_state) in `commit`, so that a skipped or repeated step has no effect on them. The
/// optimizer steps after `commit`. Also called in simulated ranks, on the meta device.
class TITAN_API StepModule : public StepMember {
 public:
  ~StepModule() override;

  bool undoes_steps() const override { return false; }
  /// [once, after all transforms] `mesh` lives as long as the run.
  virtual void connect(const dist::Mesh&) {}
  /// [trainer thread, before the first forward of each run of a step: several if an ExecutorWrapper
  /// runs it again] Resets what layers count while they run (is_first_run).
  virtual void begin_run() {}
};

}  // namespace titan::nn
