#include "profiling.h"

#include <string>
#include <utility>

#include <titan/log.h>

#include "module_scopes.h"

namespace titan::profiling {

Profiling::Profiling(const Options& options, WatcherContext context)
    : options_(options), context_(std::move(context)) {
  const bool is_simulated = context_.device.device().is_meta();
  if (options_.enable_memory_snapshot && !is_simulated)
    memory_ = std::make_unique<MemoryProfile>(
        MemoryProfileOptions{
            .folder = context_.dump_folder + "/" + options_.save_memory_snapshot_folder,
            .freq = options_.profile_freq},
        context_.device, context_.mesh);
}

void Profiling::attach(ModelPart& part) {
  if (options_.enable_profiling) {
    name_modules(part);
    layers_ = std::make_unique<BackwardSpans>();
    layers_->attach(part);
  }
  if (memory_) memory_->attach(part);
}

void Profiling::start(const WatcherStart& start) {
  part_ = &start.part;
  optimizer_ = &start.optimizer;
  if (!options_.enable_profiling) return;
  const TraceSchedule schedule(options_.profile_freq, options_.profiler_warmup,
                               options_.profiler_active, start.resumed_step + 1);
  tracer_ = std::make_unique<Tracer>(
      TracerOptions{.schedule = schedule,
                    .folder = context_.dump_folder + "/" + options_.save_traces_folder,
                    .compresses = options_.compress_traces,
                    .has_gpu = context_.device.device().is_cuda()},
      context_.mesh, *layers_);
}

void Profiling::before_step(int64_t step) {
  if (memory_) memory_->begin_step(*part_, optimizer_);
  if (tracer_) tracer_->begin_step(step);
}

void Profiling::after_step(int64_t step) {
  if (tracer_) tracer_->end_step(step);
  if (memory_) memory_->end_step(step);
}

void Profiling::failed(int64_t last_done_step) noexcept {
  if (memory_) memory_->on_error(last_done_step);
}

void Profiling::finish(int64_t last_step) noexcept {
  try {
    if (tracer_) tracer_->finish(last_step);
  } catch (const std::exception& error) {
    log::warn(std::string("the last profile was not saved: ") + error.what());
  }
}

}  // namespace titan::profiling
