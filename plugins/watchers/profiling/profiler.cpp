#include "core/profile/profiler.h"

#include <titan/log.h>

#include "core/profile/module_scopes.h"

namespace titan::core {

Profiler::Profiler(const JobConfig& config, Device& device, const dist::Mesh& mesh)
    : options_(config.profiling),
      folder_(config.job.dump_folder),
      mesh_(&mesh),
      has_gpu_(device.device().is_cuda()) {
  if (options_.enable_memory_snapshot)
    memory_ = std::make_unique<MemoryProfile>(
        MemoryProfileOptions{.folder = folder_ + "/" + options_.save_memory_snapshot_folder,
                             .freq = options_.profile_freq},
        device, mesh);
}

void Profiler::attach(ModelPart& part) {
  if (options_.enable_profiling) {
    name_modules(part);
    layers_ = std::make_unique<BackwardSpans>();
    layers_->attach(part);
  }
  if (memory_) memory_->attach(part);
}

void Profiler::start(int64_t resumed_step, ModelPart& part, Optimizer* optimizer) {
  part_ = &part;
  optimizer_ = optimizer;
  last_step_ = resumed_step;
  if (!options_.enable_profiling) return;
  const TraceSchedule schedule(options_.profile_freq, options_.profiler_warmup,
                               options_.profiler_active, resumed_step + 1);
  tracer_ =
      std::make_unique<Tracer>(TracerOptions{.schedule = schedule,
                                             .folder = folder_ + "/" + options_.save_traces_folder,
                                             .compresses = options_.compress_traces,
                                             .has_gpu = has_gpu_},
                               *mesh_, *layers_);
}

void Profiler::step(int64_t step, const std::function<void()>& body) {
  try {
    if (memory_) memory_->begin_step(*part_, optimizer_);
    if (tracer_) tracer_->begin_step(step);
    body();
    last_step_ = step;
    if (tracer_) tracer_->end_step(step);
    if (memory_) memory_->end_step(step);
  } catch (...) {
    if (memory_) memory_->on_error(last_step_);
    last_step_ = step;
    throw;
  }
}

void Profiler::finish() noexcept {
  try {
    if (tracer_) tracer_->finish(last_step_);
  } catch (const std::exception& error) {
    log::warn(std::string("the last profile was not saved: ") + error.what());
  }
}

}  // namespace titan::core
