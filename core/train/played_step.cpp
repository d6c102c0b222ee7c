#include "core/train/played_step.h"

#include <cstdio>

#include <ATen/ops/empty.h>

#include "core/runtime/meta_memory.h"
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

std::string format(const char* format, double a) {
  char text[64];
  std::snprintf(text, sizeof text, format, a);
  return text;
}

}  // namespace

PlayedStep play_step(Run& run, const JobConfig& config) {
  const StepBatches batches = make_batches(config, config.layout.accumulation_rounds);
  run.executor->forward_backward(batches);
  PlayedStep step;
  for (const nn::Parameter* parameter : run.part->parameters()) {
    step.parameter_bytes += static_cast<int64_t>(parameter->shard().nbytes());
    if (parameter->grad().defined())
      step.gradient_bytes += static_cast<int64_t>(parameter->grad().nbytes());
  }
  const auto update = [&] {
    clip_gradients(*run.part, run.mesh, c10::kMeta, config.training.max_norm);
    run.optimizer->step(run.lr_scheduler->factor(1));
    run.part->clear_gradients();
  };
  update();
  if (auto* stateful = dynamic_cast<StatefulOptimizer*>(run.optimizer.get()))
    stateful->visit_state([&](Parameter&, std::string_view, at::Tensor& state) {
      step.optimizer_bytes += static_cast<int64_t>(state.nbytes());
    });
  step.traffic = run.mesh.recorder().traffic();
  // once more, now that the optimizer has its states
  MetaMemory::reset_peak();
  run.executor->forward_backward(batches);
  update();
  step.peak_bytes = MetaMemory::peak();
  return step;
}

std::string to_text(const PlayedStep& step) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  const auto line = [](const std::string& name, int64_t bytes) {
    char text[128];
    std::snprintf(text, sizeof text, "  %-34s %12.4f GiB %18lld bytes\n", name.c_str(),
                  static_cast<double>(bytes) / kGiB, static_cast<long long>(bytes));
    return std::string(text);
  };
  std::string text = "this rank holds\n";
  text += line("parameters", step.parameter_bytes);
  text += line("gradients", step.gradient_bytes);
  text += line("optimizer states", step.optimizer_bytes);
  text += line("together", step.parameter_bytes + step.gradient_bytes + step.optimizer_bytes);
  text += line("most at once, with activations", step.peak_bytes);
  text += "this rank sends in a step\n";
  for (const auto& [key, traffic] : step.traffic) {
    std::string row = line(key.first + " " + key.second, traffic.bytes);
    row.insert(row.size() - 1, format("  in %.0f calls", static_cast<double>(traffic.calls)));
    text += row;
  }
  return text;
}

}  // namespace titan::core
