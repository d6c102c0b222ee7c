// Loggers that observe tensors: finds the modules they ask for, wraps them, and sums the observed
// numbers of a step over all ranks. Used by assembly and by the trainer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/observe.h>
#include <titan/step.h>
#include <titan/transform.h>
#include <titan/watcher.h>

#include <titan/named_totals.h>
#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Whether a logger observes tensors, and is therefore made on every rank.
bool observes_tensors(Registry& registry, const Selection& logger);

/// As a step member it learns the step's number. As a reducer it drops the numbers of a repeated
/// step and observes only while a step runs: never in validation, nor where a backward recomputes a
/// layer. Thread: trainer thread, and the thread that runs the layers.
class Observations final : public StepMember, public GradientReducer {
 public:
  /// A `logger` that is not a TensorObserver is not added.
  void add(const Selection& chosen, std::shared_ptr<Logger> logger);
  bool empty() const { return probes_.empty(); }

  /// [on the whole model, after converters] Finds the observed modules. ComponentError: a pattern
  /// matches nothing, a number is out of range, or queries and keys are asked for where `mesh` cuts
  /// sequences.
  void match(ModelPart& whole, const dist::Mesh& mesh);
  /// [after all transforms] Wraps the observed modules of this rank. ComponentError: a module no
  /// longer exists. This outlives the part's last forward.
  void attach(ModelPart& part);

  bool undoes_steps() const override { return false; }
  void begin(Step& step) override;
  void begin_step() override;
  void start_microbatch(bool) override {}
  void finish_gradients() override { is_open_ = false; }

  /// [after the step] If an observation was due, reports the numbers of all ranks to `loggers`.
  /// Collective. plugin Error: a due module was not run, because another module computes in its
  /// place.
  void log(WatcherLog& loggers, const dist::Group& world, c10::Device device);

 private:
  /// One Observation.
  struct Probe {
    Selection chosen;
    std::shared_ptr<Logger>
        logger;  // owns `observer`; a failing sink leaves the run, this does not
    TensorObserver* observer;
    size_t index;
    Observation asked;
    std::vector<std::string> modules;  // of the whole model
    bool is_due = false;
    std::map<std::string, int64_t> num_seen;  // by module of this rank, in this attempt of the step
  };
  class Attention;
  class Head;

  void match(Probe& probe, ModelPart& whole, const dist::Mesh& mesh);
  void attach(Probe& probe, const std::string& path, nn::Module& module);
  bool is_looking(const Probe& probe) const;
  void look(Probe& probe, const std::string& module, ObservedTensors tensors);

  std::vector<std::unique_ptr<Probe>> probes_;  // wrappers hold references
  int64_t step_ = 0;
  bool is_open_ = false;
  NamedTotals totals_;                       // of this rank
  std::map<std::string, std::string> tags_;  // of scalars: they outlive the run
};

/// `observations` as a watcher. `mesh`, `device` and `loggers` outlive it.
std::unique_ptr<Watcher> as_watcher(std::unique_ptr<Observations> observations,
                                    const dist::Mesh& mesh, Device& device, WatcherLog& loggers);

}  // namespace titan::core
