#include "core/estimate/simulated_step.h"

#include <cstdio>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <titan/dist/collectives.h>
#include <titan/program/units.h>
#include <titan/recompute.h>

#include "core/estimate/gpu_memory.h"
#include "core/train/step_members.h"

namespace titan::core {
namespace {

/// Two documents a row, in host memory as real ones are.
at::Tensor pairs_of_documents(int64_t rows, int64_t seq_len) {
  const at::Tensor documents = at::zeros({rows, seq_len}, at::kInt);
  documents.narrow(1, seq_len / 2, seq_len - seq_len / 2).fill_(1);
  return documents;
}

StepBatches make_batches(const Run& run, const JobConfig& config) {
  const int64_t num_rounds = config.layout.accumulation_rounds;
  const auto ids = at::TensorOptions().dtype(at::kLong).device(c10::kMeta);
  const int64_t rows = config.training.local_batch_size, seq_len = config.training.seq_len;
  StepBatches batches;
  for (int64_t i = 0; i < num_rounds; ++i) {
    Batch batch;
    batch.tokens = at::empty({rows, seq_len}, ids);
    batch.labels = at::empty({rows, seq_len}, ids);
    if (run.term_counter) batch.documents = pairs_of_documents(rows, seq_len);
    batches.microbatches.push_back(std::move(batch));
  }
  batches.num_local_valid_tokens = num_rounds * rows * seq_len;
  batches.num_valid_tokens = batches.num_tokens = config.layout.global_batch_size * seq_len;
  return batches;
}

/// Reports the current place in the step to MetaMemory, and measures the gradients when all are
/// complete.
class PlaceTeller final : public StepMember {
 public:
  PlaceTeller(const ModelPart& part, SimulatedStep& simulated)
      : part_(part), simulated_(simulated) {}

  void reduced(Step& step) override {
    step.batches.microbatches.clear();  // not counted: real batches are in host memory
    simulated_.parameter_bytes = simulated_.gradient_bytes = 0;
    for (const nn::Parameter* parameter : part_.parameters()) {
      MetaMemory::relabel(parameter->grad(), MemoryUse::gradients);
      simulated_.parameter_bytes += static_cast<int64_t>(parameter->shard().nbytes());
      if (parameter->grad().defined())
        simulated_.gradient_bytes += static_cast<int64_t>(parameter->grad().nbytes());
    }
    MetaMemory::set_place("clipping of gradients");
  }
  void commit(const Step&) override { MetaMemory::set_place("optimizer"); }

 private:
  const ModelPart& part_;
  SimulatedStep& simulated_;
};

const std::vector<PipelineAction>* own_actions(const Run& run, const JobConfig& config) {
  if (!config.pipeline_plan) return nullptr;
  return &config.pipeline_plan->actions[static_cast<size_t>(run.mesh.group("pp").rank())];
}

std::string line(const std::string& name, int64_t bytes) {
  char text[160];
  std::snprintf(text, sizeof text, "  %-34s %12.4f GiB %18lld bytes", name.c_str(),
                static_cast<double>(bytes) / kGiB, static_cast<long long>(bytes));
  return text;
}

}  // namespace

SimulatedStep simulate_step(Run& run, const JobConfig& config, const SimulationOptions& options) {
  const SimulatedKernels kernels(config);
  LayerWatch watch(*run.part, run.mesh.recorder(), own_actions(run, config));
  SimulatedStep simulated;
  PlaceTeller places(*run.part, simulated);
  const StepMembers members(run, config, [] {});
  StepOrder order = members.order();
  order.first.insert(order.first.begin(), &places);
  StepRunner runner(*run.part, *run.executor, order, run.mesh.group("world"), c10::kMeta);
  const auto run_step = [&](int64_t number) {
    Step step{.number = number, .batches = make_batches(run, config)};
    runner.run(step);
  };

  run_step(1);
  if (auto* stateful = dynamic_cast<StatefulOptimizer*>(run.optimizer.get()))
    stateful->visit_state([&](Parameter&, const OptimizerState&, const at::Tensor& state) {
      simulated.optimizer_bytes += static_cast<int64_t>(state.nbytes());
      MetaMemory::relabel(state, MemoryUse::optimizer_states);
    });
  simulated.traffic = run.mesh.recorder().traffic();

  MetaMemory::reset_peak();
  const double recomputed_before = RecomputeScope::recomputed_flops();
  watch.start_step();
  int64_t num_exchanges = 0;
  {
    const dist::UncountedRows rows(dist::UncountedRows::evenly);
    run_step(2);
    num_exchanges = rows.num_exchanges();
  }
  simulated.recomputed_flops = RecomputeScope::recomputed_flops() - recomputed_before;
  simulated.peak = MetaMemory::peak();
  simulated.layers = watch.layers();
  if (options.finds_uneven_peak && num_exchanges > 0) {
    const dist::UncountedRows rows(dist::UncountedRows::all_to_this_rank);
    MetaMemory::reset_peak();
    run_step(3);
    simulated.uneven_peak = MetaMemory::peak();
  }
  MetaMemory::set_place("");
  return simulated;
}

std::string to_text(const SimulatedStep& step) {
  std::string text = "this rank holds\n";
  text += line("parameters", step.parameter_bytes) + "\n";
  text += line("gradients", step.gradient_bytes) + "\n";
  text += line("optimizer states", step.optimizer_bytes) + "\n";
  text +=
      line("together", step.parameter_bytes + step.gradient_bytes + step.optimizer_bytes) + "\n";
  text += line("most at once, with activations", step.peak.bytes.total()) + "\n";
  text += "this rank sends in a step\n";
  for (const auto& [key, traffic] : step.traffic)
    text += line(key.first + " " + key.second, traffic.bytes) + "  in " +
            std::to_string(traffic.calls) + " calls\n";
  return text;
}

}  // namespace titan::core
