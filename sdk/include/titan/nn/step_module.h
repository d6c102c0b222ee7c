// A module with work around each training step: counters, a bias that moves by what was counted.
// Used by authors of layers.
#pragma once

#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/step.h>

namespace titan::nn {

/// A Module that derives from it beside takes part in every step (StepMember), on each rank that
/// has it, in the model's order; one that another module has replaced does not. What it keeps as
/// state (Module::add_state) it changes in `commit`: then a skipped or repeated step leaves no
/// trace. The optimizer steps after `commit`. Also called in simulated ranks, on the meta device.
class TITAN_API StepModule : public StepMember {
 public:
  ~StepModule() override;

  bool undoes_steps() const override { return false; }
  /// [once, when all transforms were applied] `mesh` lives as long as the run.
  virtual void connect(const dist::Mesh&) {}
  /// [trainer thread, before the first forward each time that the step is run: more than once where
  /// an ExecutorWrapper runs it again] What is counted while layers run (is_first_run) begins anew.
  virtual void begin_run() {}
};

}  // namespace titan::nn
