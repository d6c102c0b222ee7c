#include "core/train/metrics.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <titan/error.h>
#include <titan/program/units.h>

namespace titan::core {
namespace {

double of(const StepClock::Seconds& seconds, StepPhase phase) {
  return seconds[static_cast<size_t>(phase)];
}

/// Per step, under tags of v0.2.2 where it has some. Validation time is not part of the steps.
void add_times(const StepClock::Seconds& seconds, double elapsed, double num_steps,
               const MetricsOptions& options, std::vector<Scalar>& scalars) {
  const auto add = [&](std::string_view tag, StepPhase phase) {
    scalars.push_back({tag, of(seconds, phase) / num_steps});
  };
  scalars.push_back({"time_metrics/end_to_end(s)", elapsed / num_steps});
  add("time_metrics/data_loading(s)", StepPhase::data);
  scalars.push_back({"time_metrics/data_loading(%)", 100 * of(seconds, StepPhase::data) / elapsed});
  add("time_metrics/forward(s)", StepPhase::forward);
  add("time_metrics/backward(s)", StepPhase::backward);
  add("time_metrics/communication(s)", StepPhase::communication);
  add("time_metrics/optimizer(s)", StepPhase::optimizer);
  if (options.times_checkpoints) add("time_metrics/checkpoint(s)", StepPhase::checkpoint);
  if (options.replicas) add("time_metrics/replicas(s)", StepPhase::replicas);
  add("time_metrics/other(s)", StepPhase::other);
}

/// A device without a caching allocator has no reserved memory.
void add_memory(const MemoryStats& memory, std::vector<Scalar>& scalars) {
  const auto total = static_cast<double>(memory.total);
  const auto peak = static_cast<double>(memory.peak);
  scalars.push_back({"memory/max_active(GiB)", peak / kGiB});
  scalars.push_back({"memory/max_active(%)", 100 * peak / total});
  if (!memory.reserved) return;
  const auto reserved = static_cast<double>(memory.reserved->peak);
  scalars.push_back({"memory/max_reserved(GiB)", reserved / kGiB});
  scalars.push_back({"memory/max_reserved(%)", 100 * reserved / total});
  scalars.push_back(
      {"memory/num_alloc_retries", static_cast<double>(memory.reserved->num_retries)});
  scalars.push_back({"memory/num_ooms", static_cast<double>(memory.reserved->num_ooms)});
}

}  // namespace

Metrics::Metrics(const MetricsOptions& options, const dist::Mesh& mesh, Device& device,
                 LossParts& parts, LoggerSet& loggers, Journal& journal)
    : options_(options),
      mesh_(mesh),
      device_(device),
      parts_(parts),
      loggers_(loggers),
      journal_(journal) {
  restart_interval();
}

StepClock::Seconds Metrics::interval_seconds() const {
  StepClock::Seconds seconds = mesh_.recorder().clock().seconds();
  for (size_t phase = 0; phase < kNumPhases; ++phase) seconds[phase] -= interval_start_[phase];
  return seconds;
}

void Metrics::reduced(Step& step) {
  if (!is_due(step.number)) return;
  const StepBatches& batches = step.batches;
  const c10::Device place = device_.device();
  const dist::Group& loss_group = mesh_.group("loss");
  const dist::Group& replicas = mesh_.replicas();
  const double average = loss_group.all_reduce(step.loss.normalized_sum, dist::Reduce::sum, place);
  losses_.average = replicas.all_reduce(average, dist::Reduce::sum, place);
  // ranks of one row of cp hold shards of the same sequences
  const double loss_of_rows =
      mesh_.group("cp").all_reduce(step.loss.normalized_sum, dist::Reduce::sum, place);
  losses_.num_terms = parts_.terms().global_of_replicas(batches, mesh_, place);
  const double local_loss =
      loss_of_rows * static_cast<double>(losses_.num_terms) /
      static_cast<double>(std::max<int64_t>(1, parts_.terms().local(batches)));
  losses_.max = replicas.all_reduce(loss_group.all_reduce(local_loss, dist::Reduce::max, place),
                                    dist::Reduce::max, place);
  losses_.parts = parts_.sums(mesh_, place);
  for (auto& [name, sum] : losses_.parts) sum = replicas.all_reduce(sum, dist::Reduce::sum, place);
  losses_.auxiliary = auxiliary_loss(step);
}

void Metrics::record(const Step& step, const TrainState& state, double lr) {
  interval_tokens_ += step.batches.num_tokens;
  ++interval_steps_;
  if (!is_due(step.number)) return;

  device_.synchronize();
  const StepClock::Seconds seconds = interval_seconds();
  const double elapsed =
      std::accumulate(seconds.begin(), seconds.end(), 0.0) - of(seconds, StepPhase::validation);
  const c10::Device place = device_.device();
  const dist::Grid& grid = mesh_.grid();
  const auto num_ranks = static_cast<double>(grid.world_size() * mesh_.replicas().size());
  const double tps = static_cast<double>(interval_tokens_) / (elapsed * num_ranks);
  const MemoryStats memory = device_.memory();

  const bool trains_alone = options_.replicas && options_.replicas->trains_alone();
  std::vector<Scalar> scalars = {
      {trains_alone ? "loss_metrics/group_avg_loss" : "loss_metrics/global_avg_loss",
       losses_.average},
      {trains_alone ? "loss_metrics/group_max_loss" : "loss_metrics/global_max_loss", losses_.max},
      {"throughput(tps)", tps},
      {"throughput_of_job(tps)", tps * num_ranks},
      {"tflops", options_.flops_per_token * tps / 1e12},
      {"n_tokens_seen", static_cast<double>(state.tokens_seen)},
      {"n_tokens_learned", static_cast<double>(state.tokens_learned)},
      {"lr", lr},
  };
  const std::vector<Scalar> parts =
      parts_.scalars("loss_metrics/", losses_.parts, losses_.num_terms);
  scalars.insert(scalars.begin() + 2, parts.begin(), parts.end());
  if (losses_.auxiliary)
    scalars.push_back({"loss_metrics/global_avg_auxiliary_loss", *losses_.auxiliary});
  if (step.norm) scalars.insert(scalars.begin() + 2, {"grad_norm", *step.norm});
  scalars.insert(scalars.end(), step.scalars.begin(), step.scalars.end());
  if (options_.replicas)
    for (const Scalar& scalar : options_.replicas->scalars()) scalars.push_back(scalar);
  if (grid.world_size() > 1) {
    const int64_t sent = mesh_.recorder().total_bytes() - interval_start_bytes_;
    scalars.push_back({"comm_metrics/sent_per_step(MiB)",
                       static_cast<double>(sent) / kMiB / static_cast<double>(interval_steps_)});
  }
  add_memory(memory, scalars);
  add_times(seconds, elapsed, static_cast<double>(interval_steps_), options_, scalars);
  if (place.is_cpu())  // a GPU works asynchronously
    for (const Scalar& scalar : slowest_rank_.look(seconds, mesh_.group("world"), place))
      scalars.push_back(scalar);
  if (options_.peak_flops)
    scalars.push_back({"mfu(%)", 100 * options_.flops_per_token * tps / *options_.peak_flops});
  journal_.logged({.from = step.number - interval_steps_ + 1,
                   .to = step.number,
                   .seconds = seconds,
                   .tokens_per_second = tps * num_ranks,
                   .loss = losses_.average,
                   .memory_bytes = memory.peak,
                   .memory_total = memory.total});
  if (const std::optional<double> goodput = journal_.goodput())
    scalars.push_back({"goodput(%)", 100 * *goodput});
  loggers_.log(step.number, scalars);
  restart_interval();
}

void Metrics::finish(int64_t last_step) {
  if (interval_steps_ > 0)
    journal_.ended_unlogged(last_step - interval_steps_ + 1, last_step, interval_seconds());
}

/// Stages without such a layer contribute 0.
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
  const double sum = world.all_reduce(own.value_or(0), dist::Reduce::sum, place);
  return mesh_.replicas().all_reduce(sum, dist::Reduce::sum, place);
}

void Metrics::restart_interval() {
  interval_tokens_ = interval_steps_ = 0;
  interval_start_bytes_ = mesh_.recorder().total_bytes();
  device_.reset_peak_memory();
  interval_start_ = mesh_.recorder().clock().seconds();
}

}  // namespace titan::core
