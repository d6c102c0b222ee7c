// See mlflow_sender.h.
#include "mlflow_sender.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>

#include "../common/remembered_run.h"
#include "../common/run_files.h"

namespace titan::loggers {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostWaiting = 200'000;
constexpr size_t kMostParamBytes = 400'000;  // per request; the limit is about a megabyte
constexpr size_t kLongestValue = 6000, kLongestValueOfOldServers = 500;
constexpr double kShortestPause = 0.1, kLongestPause = 30;  // seconds between two tries
constexpr const char* kSessionTag = "titan.session";

std::chrono::milliseconds pause_after(int failures) {
  const double seconds =
      std::min(kLongestPause, kShortestPause * std::pow(2.0, std::min(failures - 1, 10)));
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

const char* status_of(RunOutcome outcome) {
  switch (outcome) {
    case RunOutcome::finished:
      return "FINISHED";
    case RunOutcome::stopped:
      return "KILLED";
    case RunOutcome::failed:
      break;
  }
  return "FAILED";
}

int64_t milliseconds_now() {
  return static_cast<int64_t>(wall_time_now() * 1000);
}

}  // namespace

MlflowSender::MlflowSender(MlflowSettings settings, MlflowRun run)
    : settings_(std::move(settings)),
      run_(std::move(run)),
      client_(settings_, post_),
      session_(random_id(20)),
      thread_([this] { work(); }) {}

MlflowSender::~MlflowSender() {
  stop_thread(Clock::now());
}

void MlflowSender::add(std::vector<MlflowPoint> points) {
  const std::lock_guard lock(mutex_);
  was_refusal_thrown_ = !refusal_.empty();
  TITAN_CHECK(refusal_.empty(), io, refusal_);
  for (MlflowPoint& point : points) waiting_.push_back(std::move(point));
  for (; waiting_.size() > kMostWaiting; ++num_lost_) waiting_.pop_front();
  changed_.notify_all();
}

void MlflowSender::work() noexcept {
  for (;;) {
    try {
      if (!is_open_) open();
      if (std::exchange(is_unsure_, false)) look_what_is_there();
      if (!next_batch()) {
        client_.set_status(run_.id, status_of(outcome_), milliseconds_now());
        break;
      }
      send_batch();
      failures_ = 0;
    } catch (const MlflowUnreachable& unreachable) {
      is_unsure_ = is_open_;
      ++failures_;
      warn_once(unreachable.what());
      if (!wait_after_failure()) break;
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      refusal_ = error.what();
      break;
    }
  }
  const std::lock_guard lock(mutex_);
  is_done_ = true;
  changed_.notify_all();
}

void MlflowSender::open() {
  make_run();
  send_params();
  is_open_ = true;
  failures_ = 0;
}

void MlflowSender::make_run() {
  constexpr int kNotFound = 404;
  if (!run_.id.empty()) {
    try {
      look_what_is_there();
      client_.set_status(run_.id, "RUNNING", 0);
      return;
    } catch (const MlflowRefusal& refusal) {
      if (refusal.status() != kNotFound || !run_.may_be_new) throw;
      log::warn("mlflow: the server does not know the resumed run, starting a new one: " +
                std::string(refusal.what()));
      run_.id.clear();
    }
  }
  if (experiment_id_.empty())
    experiment_id_ = !settings_.experiment_id.empty()
                         ? settings_.experiment_id
                         : client_.experiment_of(settings_.experiment_name);
  // an earlier request without an answer may have created the run
  if (failures_ > 0) run_.id = client_.find_run(experiment_id_, kSessionTag, session_);
  if (run_.id.empty()) {
    MlflowParams tags = run_.tags;
    tags.emplace_back(kSessionTag, session_);
    run_.id = client_.create_run(experiment_id_, run_.name, run_.start_time_ms, tags);
  }
  run_.may_be_new = false;
  remember_run(run_.id_file, {.id = run_.id});
  log::info("mlflow: run " + run_.id + " of experiment " + experiment_id_ + " at " +
            settings_.server);
}

void MlflowSender::look_what_is_there() {
  there_ = client_.run_state(run_.id);
}

void MlflowSender::send_params() {
  std::erase_if(run_.params,
                [&](const auto& param) { return there_.params.contains(param.first); });
  size_t longest = kLongestValue;
  for (size_t at = 0; at < run_.params.size();) {
    MlflowParams batch;
    for (size_t bytes = 0; at + batch.size() < run_.params.size() &&
                           batch.size() < kMlflowMostParams && bytes < kMostParamBytes;) {
      const auto& [key, value] = run_.params[at + batch.size()];
      batch.emplace_back(key, cut_text(value, longest));
      bytes += key.size() + batch.back().second.size();
    }
    try {
      client_.log_params(run_.id, batch);
      at += batch.size();
    } catch (const MlflowRefusal& refusal) {
      if (std::exchange(longest, kLongestValueOfOldServers) == kLongestValue) continue;
      log::warn(std::string("mlflow: the configuration was not sent: ") + refusal.what());
      return;
    }
  }
}

bool MlflowSender::next_batch() {
  const auto is_there = [this](const MlflowPoint& point) {
    const auto last = there_.last_steps.find(point.key);
    return last != there_.last_steps.end() && point.step <= last->second;
  };
  std::unique_lock lock(mutex_);
  for (;;) {
    for (; batch_.size() < kMlflowMostMetrics && !waiting_.empty(); waiting_.pop_front())
      batch_.push_back(std::move(waiting_.front()));
    std::erase_if(batch_, is_there);
    if (!batch_.empty()) return true;
    if (!waiting_.empty()) continue;
    if (is_ending_) return false;
    changed_.wait(lock, [this] { return !waiting_.empty() || is_ending_; });
  }
}

/// Removes points from the batch after the answer.
void MlflowSender::send_batch() {
  constexpr int kBadRequest = 400;
  try {
    client_.log_points(run_.id, batch_);
  } catch (const MlflowRefusal& refusal) {
    if (refusal.status() != kBadRequest) throw;
    if (!std::exchange(was_warned_of_refusal_, true))
      log::warn(std::string("mlflow: the server rejected values, they are dropped: ") +
                refusal.what());
    const std::lock_guard lock(mutex_);
    num_lost_ += static_cast<int64_t>(batch_.size());
  }
  batch_.clear();
}

bool MlflowSender::wait_after_failure() {
  std::unique_lock lock(mutex_);
  const bool was_ending = is_ending_;
  // the end of the run justifies an immediate try
  changed_.wait_for(lock, pause_after(failures_),
                    [&] { return is_given_up_ || is_ending_ != was_ending; });
  return !is_given_up_;
}

void MlflowSender::warn_once(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  if (is_given_up_ || std::exchange(has_warned_, true)) return;
  log::warn("mlflow: " + problem +
            "; training continues, and logged values are sent when the server answers again");
}

void MlflowSender::stop_thread(Clock::time_point deadline) {
  {
    std::unique_lock lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
    changed_.wait_until(lock, deadline, [&] { return is_done_; });
    is_given_up_ = true;
    changed_.notify_all();
    if (!is_done_) post_.abort();
  }
  if (thread_.joinable()) thread_.join();
}

void MlflowSender::finish(RunOutcome outcome) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      outcome_ = outcome;
    }
    stop_thread(Clock::now() +
                std::chrono::milliseconds(static_cast<int64_t>(settings_.finish_timeout_s * 1000)));
    const size_t left = batch_.size() + waiting_.size();
    const int64_t lost = num_lost_ + static_cast<int64_t>(left);
    if (was_refusal_thrown_) return;
    if (!refusal_.empty())
      log::warn("mlflow: " + refusal_);
    else if (lost > 0)
      log::warn("mlflow: " + std::to_string(lost) + " values did not reach " + settings_.server +
                (left == 0 ? "" : " within finish_timeout at the end"));
    else if (is_unsure_ || !is_open_)
      log::warn("mlflow: " + settings_.server + " did not get the outcome of the run");
  } catch (const std::exception& error) {
    log::warn(error.what());
  }
}

}  // namespace titan::loggers
