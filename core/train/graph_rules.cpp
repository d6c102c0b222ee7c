#include "core/train/graph_rules.h"

#include <vector>

#include <titan/device_graphs.h>
#include <titan/log.h>

#include "core/train/step/sequential_executor.h"

namespace titan::core {
namespace {

/// Why a reducer's work cannot be recorded with the step; empty if it can.
std::string why_not_recorded(const GradientReducer& reducer) {
  const auto* host = dynamic_cast<const HostWork*>(&reducer);
  return host ? host->host_work() : "a plugin takes part in each step";
}

}  // namespace

std::string why_no_graph(const Run& run, const JobConfig& config) {
  if (run.mesh.group("world").size() > 1) return "ranks communicate inside of steps";
  if (!run.workers.sequential || run.executor != run.workers.sequential.get())
    return "a plugin runs the microbatches";
  if (run.early_optimizer) return "weights change inside of the backward";
  if (run.loss_scaler->undoes_steps()) return "the loss scale of float16 changes from step to step";
  for (const auto& transform : run.transforms)
    if (const auto* host = dynamic_cast<const HostWork*>(transform.get()))
      if (!host->host_work().empty()) return host->host_work();
  if (config.data.isolate_documents) return "documents differ in length";
  if (run.watchers.look_into_layers()) return "a watcher or logger reads tensors of layers";
  if (!run.after_optimizer_step.empty())
    return "a transform prepares tensors for each step after the update";
  if (!run.members.empty()) return "a plugin takes part in each step";
  for (const GradientReducer* reducer :
       static_cast<SequentialExecutor&>(*run.workers.sequential).reducers())
    if (const std::string why = why_not_recorded(*reducer); !why.empty()) return why;
  return "";
}

std::unique_ptr<StepGraph> make_step_graph(Run& run, const JobConfig& config) {
  auto* graphs = dynamic_cast<DeviceGraphs*>(run.device.get());
  if (!graphs || !config.compile.enable || !config.compile.graphs) return nullptr;
  const std::string why = why_no_graph(run, config);
  const bool is_first = run.mesh.rank() == 0;
  if (is_first)
    log::info(why.empty()
                  ? "forward and backward are replayed as a graph of the device from step " +
                        std::to_string(run.state.step + StepGraph::kStepsBefore + 1) + " on"
                  : "forward and backward are not replayed as a graph: " + why);
  if (!why.empty()) return nullptr;
  return std::make_unique<StepGraph>(*graphs, *run.part, run.device->device());
}

}  // namespace titan::core
