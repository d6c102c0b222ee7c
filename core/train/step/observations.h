// Loggers that look at tensors: what they ask for, found in the model and put around its modules,
// and their numbers of a step over all ranks. Used by assembly and by the trainer.
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

/// Whether a logger looks at tensors, and is made on every rank.
bool observes_tensors(Registry& registry, const Selection& logger);

/// As a member of the step it learns the step's number; as a reducer among the others it forgets a
/// run that is thrown away, and looks while one is under way: never in validation, nor where a
/// layer is computed again in a backward. Thread: trainer thread, and the one that runs the layers.
class Observations final : public StepMember, public GradientReducer {
 public:
  /// `logger` is a TensorObserver, else it is not added.
  void add(const Selection& chosen, std::shared_ptr<Logger> logger);
  bool empty() const { return probes_.empty(); }

  /// [on the whole model, after converters] Finds what is asked for. ComponentError: a pattern fits
  /// nothing; a number that cannot be; queries and keys where `mesh` cuts sequences.
  void match(ModelPart& whole, const dist::Mesh& mesh);
  /// [after all transforms] Goes around what this rank runs of it. ComponentError: it is not there
  /// any more. This outlives the part's last forward.
  void attach(ModelPart& part);

  bool undoes_steps() const override { return false; }
  void begin(Step& step) override;
  void begin_step() override;
  void start_microbatch(bool) override {}
  void finish_gradients() override { is_open_ = false; }

  /// [after the step] Where the step was due: gives the numbers of all ranks to `loggers`.
  /// Collective. plugin Error: a module that is due has not been run by whoever computes in its
  /// place.
  void log(WatcherLog& loggers, const dist::Group& world, c10::Device device);

 private:
  /// One Observation.
  struct Probe {
    Selection chosen;
    std::shared_ptr<Logger> logger;  // that `observer` is; a failing sink leaves the run, this not
    TensorObserver* observer;
    size_t index;
    Observation asked;
    std::vector<std::string> modules;  // of the whole model
    bool is_due = false;
    std::map<std::string, int64_t> num_seen;  // by module of this rank, in this run of the step
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
