#include "core/train/played_step.h"

#include <cstdio>

#include <ATen/ops/empty.h>

#include <titan/recompute.h>

#include "core/base/units.h"
#include "core/train/gradient_norm.h"

namespace titan::core {
namespace {

StepBatches make_batches(const JobConfig& config, int64_t num_rounds) {
  const auto ids = at::TensorOptions().dtype(at::kLong).device(c10::kMeta);
  const int64_t rows = config.training.local_batch_size, seq_len = config.training.seq_len;
  StepBatches batches;
  for (int64_t i = 0; i < num_rounds; ++i) {
    Batch batch;
    batch.tokens = at::empty({rows, seq_len}, ids);
    batch.labels = at::empty({rows, seq_len}, ids);
    batches.microbatches.push_back(std::move(batch));
  }
  batches.num_local_valid_tokens = num_rounds * rows * seq_len;
  batches.num_valid_tokens = config.layout.global_batch_size * seq_len;
  return batches;
}

void label_gradients(ModelPart& part) {
  for (const nn::Parameter* parameter : part.parameters())
    MetaMemory::relabel(parameter->grad(), MemoryUse::gradients);
}

void forward_backward(Run& run, const JobConfig& config) {
  StepBatches batches = make_batches(config, config.layout.accumulation_rounds);
  batches.gradient_scale = run.loss_scaler->scale();
  if (run.early_optimizer) run.early_optimizer->start_step(run.lr_scheduler->factor(1));
  run.executor->forward_backward(batches);
  label_gradients(*run.part);
}

/// As the trainer does it.
void update(Run& run, const JobConfig& config) {
  if (!run.early_optimizer) {
    MetaMemory::set_place("clipping of gradients");
    clip_gradients(*run.part, run.mesh, c10::kMeta, config.training.max_norm,
                   run.loss_scaler->scale());
  }
  MetaMemory::set_place("optimizer");
  run.optimizer->step(run.lr_scheduler->factor(1));
  for (AfterOptimizerStep* work : run.after_optimizer_step) work->after_optimizer_step();
  run.part->clear_gradients();
}

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

PlayedStep play_step(Run& run, const JobConfig& config) {
  LayerWatch watch(*run.part, run.mesh.recorder(), own_actions(run, config));
  PlayedStep step;
  forward_backward(run, config);
  for (const nn::Parameter* parameter : run.part->parameters()) {
    step.parameter_bytes += static_cast<int64_t>(parameter->shard().nbytes());
    if (parameter->grad().defined())
      step.gradient_bytes += static_cast<int64_t>(parameter->grad().nbytes());
  }
  update(run, config);
  if (auto* stateful = dynamic_cast<StatefulOptimizer*>(run.optimizer.get()))
    stateful->visit_state([&](Parameter&, std::string_view, const at::Tensor& state) {
      step.optimizer_bytes += static_cast<int64_t>(state.nbytes());
      MetaMemory::relabel(state, MemoryUse::optimizer_states);
    });
  step.traffic = run.mesh.recorder().traffic();

  MetaMemory::reset_peak();
  const double recomputed_before = RecomputeScope::recomputed_flops();
  watch.start_step();
  forward_backward(run, config);
  update(run, config);
  step.recomputed_flops = RecomputeScope::recomputed_flops() - recomputed_before;
  step.peak = MetaMemory::peak();
  step.layers = watch.layers();
  MetaMemory::set_place("");
  return step;
}

std::string to_text(const PlayedStep& step) {
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
