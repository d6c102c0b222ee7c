#include "core/train/metrics.h"

#include <algorithm>
#include <vector>

#include <titan/error.h>

#include "core/base/clock.h"
#include "core/base/units.h"

namespace titan::core {
Metrics::Metrics(const MetricsOptions& options, const dist::Mesh& mesh, Device& device,
                 LossParts& parts, LoggerSet& loggers)
    : options_(options), mesh_(mesh), device_(device), parts_(parts), loggers_(loggers) {
  restart_interval();
}

void Metrics::record(const Step& step, int64_t tokens_seen, double lr) {
  const StepBatches& batches = step.batches;
  for (const Batch& batch : batches.microbatches) interval_tokens_ += batch.tokens.numel();
  ++interval_steps_;
  if (step.number != 1 && step.number % options_.log_freq != 0) return;

  device_.synchronize();
  const double elapsed = monotonic_seconds() - interval_start_;
  const dist::Group& loss_group = mesh_.group("loss");
  const c10::Device place = device_.device();
  const double average_loss =
      loss_group.all_reduce(step.loss.normalized_sum, dist::Reduce::sum, place);
  // ranks of one row of cp hold parts of the same sequences
  const double loss_of_rows =
      mesh_.group("cp").all_reduce(step.loss.normalized_sum, dist::Reduce::sum, place);
  const double local_loss =
      loss_of_rows * static_cast<double>(batches.num_valid_tokens) /
      static_cast<double>(std::max<int64_t>(1, batches.num_local_valid_tokens));
  const double max_loss = loss_group.all_reduce(local_loss, dist::Reduce::max, place);

  const dist::Grid& grid = mesh_.grid();
  const double tps = static_cast<double>(interval_tokens_) /
                     (elapsed * static_cast<double>(grid.world_size() / grid.batch()));
  const MemoryStats memory = device_.memory();

  std::vector<Scalar> scalars = {
      {"loss_metrics/global_avg_loss", average_loss},
      {"loss_metrics/global_max_loss", max_loss},
      {"throughput(tps)", tps},
      {"tflops", options_.flops_per_token * tps / 1e12},
      {"time_metrics/end_to_end(s)", elapsed / static_cast<double>(interval_steps_)},
      {"time_metrics/data_loading(s)", data_seconds_ / static_cast<double>(interval_steps_)},
      {"time_metrics/data_loading(%)", 100 * data_seconds_ / elapsed},
      {"memory/max_active(GiB)", static_cast<double>(memory.peak) / kGiB},
      {"memory/max_active(%)",
       100.0 * static_cast<double>(memory.peak) / static_cast<double>(memory.total)},
      {"n_tokens_seen", static_cast<double>(tokens_seen)},
      {"lr", lr},
  };
  const std::vector<Scalar> parts =
      parts_.scalars("loss_metrics/", parts_.sums(mesh_, place), batches.num_valid_tokens);
  scalars.insert(scalars.begin() + 2, parts.begin(), parts.end());
  if (const auto auxiliary = auxiliary_loss(step))
    scalars.push_back({"loss_metrics/global_avg_auxiliary_loss", *auxiliary});
  if (step.norm) scalars.insert(scalars.begin() + 2, {"grad_norm", *step.norm});
  scalars.insert(scalars.end(), step.scalars.begin(), step.scalars.end());
  if (grid.world_size() > 1) {
    const int64_t sent = mesh_.recorder().total_bytes() - interval_start_bytes_;
    scalars.push_back({"comm_metrics/sent_per_step(MiB)",
                       static_cast<double>(sent) / kMiB / static_cast<double>(interval_steps_)});
  }
  if (options_.times_checkpoints)
    scalars.push_back(
        {"time_metrics/checkpoint(s)", checkpoint_seconds_ / static_cast<double>(interval_steps_)});
  if (options_.peak_flops)
    scalars.push_back({"mfu(%)", 100 * options_.flops_per_token * tps / *options_.peak_flops});
  loggers_.log(step.number, scalars);
  restart_interval();
}

/// Stages without such a layer take part with 0.
std::optional<double> Metrics::auxiliary_loss(const Step& step) {
  const dist::Group& world = mesh_.group("world");
  const c10::Device place = device_.device();
  const std::optional<double>& own = step.loss.auxiliary;
  if (!has_auxiliary_loss_)
    has_auxiliary_loss_ = world.all_reduce(int64_t{own.has_value()}, dist::Reduce::max, place) > 0;
  TITAN_CHECK(
      *has_auxiliary_loss_ || !own, plugin, "a layer has an auxiliary loss in step ", step.number,
      ", but none had one in the first step that was logged; call nn::with_auxiliary_loss in "
      "every step, with 0 where it does not count");
  if (!*has_auxiliary_loss_) return std::nullopt;
  return world.all_reduce(own.value_or(0), dist::Reduce::sum, place);
}

void Metrics::restart_interval() {
  interval_tokens_ = interval_steps_ = 0;
  data_seconds_ = checkpoint_seconds_ = 0;
  interval_start_bytes_ = mesh_.recorder().total_bytes();
  device_.reset_peak_memory();
  interval_start_ = monotonic_seconds();
}

}  // namespace titan::core
