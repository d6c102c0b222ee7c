#include "hangs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <numeric>
#include <utility>

#include <ATen/ops/tensor.h>
#include <ATen/record_function.h>
#include <titan/host_collectives.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/host.h>
#include <titan/program/stop_signals.h>

#include "late_ranks.h"

namespace titan::hangs {
namespace {

/// The second save of a run may wait for the first one, if saves are asynchronous.
constexpr int64_t kSavesWithoutLimit = 2;
/// A rank that hangs needs this long to report itself to the others, in seconds.
constexpr double kReportTime = 5;
constexpr size_t kCheckpoint = section_of(StepPhase::checkpoint);

/// Without an exponent: `titan launch` compares the errors of restarts without their numbers.
std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f s", seconds);
  return text.data();
}

/// Whether a debugger is attached to this process.
bool is_traced() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("TracerPid:")) return line.find_first_of("123456789") != std::string::npos;
  return false;
}

/// The maxima of all ranks.
std::vector<double> maxima(const std::vector<double>& own, const WatcherContext& context) {
  const auto* host = dynamic_cast<const HostCollectives*>(&context.device);
  const c10::Device device = host ? c10::Device(c10::kCPU) : context.device.device();
  const at::Tensor all = at::tensor(own, at::kDouble).to(device);
  context.mesh.group("world").all_reduce(all, dist::Reduce::max).wait();
  const at::Tensor result = all.cpu();
  const auto* values = result.const_data_ptr<double>();
  return {values, values + result.numel()};
}

}  // namespace

Hangs::Hangs(const Options& options, WatcherContext context)
    : options_(options),
      context_(std::move(context)),
      clock_(context_.mesh.recorder().clock()),
      host_waits_(context_.device.device().is_cpu()),
      host_(host_name()),
      limits_(options) {}

void Hangs::before_step(int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  if (thread_.joinable() || is_closing_ || !context_.end_run) return;
  begin_time();
  thread_ = std::thread([this] { run(); });
}

/// A repeated attempt begins its time anew.
void Hangs::begin(Step& step) {
  const std::lock_guard lock(mutex_);
  is_profiled_ = at::hasCallbacks();
  if (step.attempt > 1) begin_time();
}

void Hangs::after_step(int64_t) {
  const std::lock_guard lock(mutex_);
  before_ = times();
  if (excused_ == 0 && !is_profiled_) longest_.add(before_, is_first_step());
  ++num_done_;
  begin_time();
}

/// After the first steps, and then every few steps, all ranks learn the maxima of all.
void Hangs::settle() {
  Longest seen;
  {
    const std::lock_guard lock(mutex_);
    if (is_first_step()) return;
    const bool is_due =
        num_done_ == options_.first_steps || (num_done_ + 1) % options_.update_every == 0;
    if (!is_due) return;
    seen = longest_;
  }
  std::vector<double> own(seen.first.begin(), seen.first.end());
  own.insert(own.end(), seen.later.begin(), seen.later.end());
  own.push_back(static_cast<double>(num_saves_));
  const std::vector<double> all = maxima(own, context_);
  std::copy_n(all.begin(), kNumSections, seen.first.begin());
  std::copy_n(all.begin() + kNumSections, kNumSections, seen.later.begin());
  num_saves_ = static_cast<int64_t>(all.back());
  if (num_saves_ < kSavesWithoutLimit) seen.first[kCheckpoint] = seen.later[kCheckpoint] = 0;
  const std::lock_guard lock(mutex_);
  limits_.update(seen);
}

void Hangs::begin_time() {
  begin_ = clock_.seconds();
  excused_ = 0;
}

/// Of this step so far.
Seconds Hangs::times() const {
  const StepClock::Seconds now = clock_.seconds();
  Seconds times{};
  for (size_t i = 0; i < kNumPhases; ++i) times[i] = now[i] - begin_[i];
  times[kStep] = std::accumulate(times.begin(), times.begin() + kNumPhases, 0.0) -
                 times[section_of(StepPhase::validation)] - times[kCheckpoint];
  if (host_waits_) times[kStep] -= times[section_of(StepPhase::communication)];
  return times;
}

/// `awaited`: when the wait for a collective began, on the monotonic clock.
Situation Hangs::situation(double now, const std::optional<double>& awaited) const {
  Situation at{.phase = clock_.current(),
               .now = times(),
               .before = before_,
               .is_first_step = is_first_step(),
               .patience = 2 * options_.look_every_seconds + kReportTime};
  const bool is_apart = at.phase == StepPhase::data || at.phase == StepPhase::validation ||
                        at.phase == StepPhase::checkpoint;
  if (awaited)
    at.waits = now - *awaited;
  else if (at.phase == StepPhase::communication || (!host_waits_ && !is_apart))
    at.waits = now - clock_.current_since();
  if (at.waits) *at.waits = std::max(0.0, *at.waits - excused_);
  for (double& seconds : at.now) seconds = std::max(0.0, seconds - excused_);
  return at;
}

void Hangs::run() {
  block_signals();
  const auto pause = std::chrono::duration<double>(options_.look_every_seconds);
  double last = monotonic_seconds();
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, pause, [this] { return is_closing_; })) {
    const double now = monotonic_seconds();
    try {
      look(now, now - last, lock);
    } catch (const std::exception& error) {
      log::warn(std::string("watcher 'hangs' cannot look for hangs: ") + error.what());
      return;
    }
    last = now;
  }
}

/// `passed`: seconds since the last look.
void Hangs::look(double now, double passed, std::unique_lock<std::mutex>& lock) {
  if (is_profiled_ || is_traced())
    excused_ += passed;
  else if (passed > 2 * options_.look_every_seconds + 1)  // the process was stopped
    excused_ += passed - options_.look_every_seconds;
  const Seconds seconds = times();
  if (*std::max_element(seconds.begin(), seconds.end()) < options_.floor_seconds) return;
  const auto collective = awaited_collective(context_.mesh.recorder());
  const Situation at =
      situation(now, collective ? std::optional<double>(collective->awaited) : std::nullopt);
  const std::optional<Finding> finding = find_hang(at, limits_);
  if (!finding) return;
  const int64_t step = step_;
  lock.unlock();
  const std::string error = error_of(*finding, step, at.phase);
  if (!error.empty()) context_.end_run(error);
  lock.lock();
}

std::string Hangs::limit_text(const Limit& limit) const {
  return seconds_text(limit.seconds) + " (" + to_json(options_.factor) + " x longest time seen " +
         seconds_text(limit.longest) +
         (limit.longest * options_.factor < options_.floor_seconds
              ? ", at least watcher.hangs.floor_seconds)"
              : ")");
}

std::string Hangs::error_of(const Finding& finding, int64_t step, StepPhase phase) const {
  const RankStatuses statuses = read_rank_statuses(context_.dump_folder);
  const int rank = context_.mesh.rank();
  for (const RankStatus& status : statuses.ranks)
    if (status.rank == rank && phase == StepPhase::checkpoint && status.steps == step)
      return "";  // the last save may have another form and take longer
  std::string text = "hang: rank " + std::to_string(rank) + " (host " + host_ + ") ";
  const std::string in_step = " in training step " + std::to_string(step) + ": ";
  std::vector<std::string> lines;
  if (finding.waits) {
    const auto awaited = awaited_collective(context_.mesh.recorder());
    const LateRanks late = late_ranks(context_.mesh, awaited, statuses, wall_seconds());
    text += "waits for " + (late.names.empty() ? "other ranks" : late.names) + in_step;
    text += awaited ? awaited->operation + " number " + std::to_string(awaited->sequence) +
                          " of group '" + awaited->group + "'"
                    : "phase '" + std::string(name_of(phase)) + "'";
    text += " has taken " + seconds_text(finding.seconds) + ", limit " +
            seconds_text(finding.limit.seconds);
    for (const auto& [section, limit] : finding.parts)
      lines.push_back("section '" + std::string(name_of_section(section)) +
                      "' of another rank may take " + limit_text(limit));
    lines.insert(lines.end(), late.lines.begin(), late.lines.end());
  } else {
    const std::string others =
        finding.section == kCheckpoint ? ranks_in_phase(statuses, StepPhase::checkpoint, rank) : "";
    text += "hangs" + (others.empty() ? "" : ", or waits in it for " + others) + in_step +
            "section '" + std::string(name_of_section(finding.section)) + "' has taken " +
            seconds_text(finding.seconds) + ", limit " + limit_text(finding.limit);
  }
  lines.emplace_back(
      "titan launch --max-restarts N starts the job again from its newest checkpoint; if this was "
      "no hang, raise watcher.hangs.factor or watcher.hangs.floor_seconds");
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

void Hangs::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

/// Saved by rank 0 only, so it also counts the saves.
Value Hangs::state() const {
  ++num_saves_;
  Value state = limits_.state();
  state["saves"] = num_saves_.load();
  return state;
}

void Hangs::restore(const Value& state) {
  limits_.restore(state);
  num_saves_ = state.at("saves").as_integer();
}

}  // namespace titan::hangs
