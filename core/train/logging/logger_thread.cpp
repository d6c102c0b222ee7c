#include "core/train/logging/logger_thread.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <titan/log.h>

namespace titan::core {
namespace {

/// The thread polls for work: waking it would cost the trainer as much as everything else here.
constexpr std::chrono::milliseconds kBetweenLooks(50);

/// "60", "0.5"
std::string short_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string entries(size_t count) {
  return std::to_string(count) + (count == 1 ? " entry" : " entries");
}

}  // namespace

struct LoggerThread::State {
  State(std::string the_name, std::shared_ptr<Logger> the_logger)
      : name("logger '" + the_name + "'"), logger(std::move(the_logger)) {}

  const std::string name;  // "logger 'jsonl'"
  const std::shared_ptr<Logger> logger;

  std::mutex mutex;
  std::condition_variable is_awaited;      // by a caller that waits for the thread
  std::condition_variable has_progressed;  // of the thread
  std::deque<Call> calls;
  std::optional<StepProgress> progress;  // the latest, after all `calls`
  std::optional<RunOutcome> outcome;     // finish() is asked for
  std::optional<Clock::time_point> busy_since;
  size_t num_dropped = 0;  // calls that arrived while the queue was full
  size_t num_missed = 0;   // calls that were queued or arrived after the logger had failed
  bool is_used = false;    // something was queued: without a start there is no finish
  bool is_warned = false;  // that it is slow
  bool is_late = false;    // for a deadline of flush_until; until it is idle again
  bool has_failed = false;
  bool is_over = false;  // finish() has returned
  bool is_left_behind = false;

  bool is_idle() const { return calls.empty() && !progress && !busy_since; }
};

LoggerThread::LoggerThread(std::string name, std::shared_ptr<Logger> logger,
                           const LoggerLimits& limits)
    : limits_(limits), state_(std::make_shared<State>(name, std::move(logger))) {
  thread_ = std::thread([state = state_.get()] { work(*state); });  // `wait_for_end` keeps it alive
  ::pthread_setname_np(thread_.native_handle(), ("log " + name).substr(0, 15).c_str());
}

LoggerThread::~LoggerThread() {
  if (!thread_.joinable()) return;
  finish(RunOutcome::failed);
  wait_for_end(Clock::now());
}

/// The main function of the thread.
void LoggerThread::work(State& state) {
  std::unique_lock lock(state.mutex);
  while (!state.is_left_behind) {
    if (state.calls.empty() && !state.progress && !state.outcome) {
      state.is_awaited.wait_for(lock, kBetweenLooks);
      continue;
    }
    Call call;
    bool is_last = false;
    if (!state.calls.empty()) {
      call = std::move(state.calls.front());
      state.calls.pop_front();
    } else if (state.progress) {
      call = [progress = *std::exchange(state.progress, {})](Logger& logger) {
        logger.step_done(progress);
      };
    } else {
      if (state.is_used)
        call = [outcome = *state.outcome](Logger& logger) { logger.finish(outcome); };
      is_last = true;
    }
    state.busy_since = Clock::now();
    lock.unlock();
    std::optional<std::string> problem;
    try {
      if (call) call(*state.logger);
    } catch (const std::exception& e) {
      problem = e.what();
    } catch (...) {
      problem = "an exception of unknown type";
    }
    call = nullptr;  // frees its captures outside of the lock
    if (problem) fail(state, *problem);
    lock.lock();
    state.busy_since.reset();
    if (state.is_idle()) state.is_late = false;
    state.is_over = is_last || problem;
    state.has_progressed.notify_all();
    if (state.is_over) return;
  }
}

/// Warns and closes the logger; counts the calls that it misses.
void LoggerThread::fail(State& state, const std::string& problem) {
  std::deque<Call> missed;
  {
    const std::lock_guard lock(state.mutex);
    if (state.is_left_behind) return;
    state.has_failed = true;
    state.progress.reset();
    missed.swap(state.calls);
    state.num_missed += missed.size();
  }
  log::warn(state.name + " failed and is off from here on; training continues: " + problem);
  state.logger->finish(RunOutcome::failed);
}

void LoggerThread::add(Call call) {
  std::string warning;
  {
    const std::lock_guard lock(state_->mutex);
    State& state = *state_;
    state.is_used = true;
    if (state.has_failed) {
      ++state.num_missed;
      return;
    }
    const bool is_full = state.calls.size() >= limits_.most_waiting;
    const bool hangs =
        state.busy_since &&
        std::chrono::duration<double>(Clock::now() - *state.busy_since).count() > limits_.patience;
    if ((is_full || hangs) && !std::exchange(state.is_warned, true))
      warning = is_full ? state.name + " is too slow: " + entries(state.calls.size()) +
                              " wait for it, and those that come are dropped until it catches up; "
                              "training continues"
                        : state.name + " has been in one call for more than " +
                              short_text(limits_.patience) +
                              " s; training continues without waiting for it";
    if (is_full) {
      ++state.num_dropped;
    } else {
      state.calls.push_back(std::move(call));
    }
  }
  if (!warning.empty()) log::warn(warning);
}

void LoggerThread::step_done(const StepProgress& progress) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->has_failed) state_->progress = progress;
}

void LoggerThread::flush() {
  std::unique_lock lock(state_->mutex);
  state_->is_awaited.notify_one();
  state_->has_progressed.wait(lock, [this] { return state_->is_over || state_->is_idle(); });
}

void LoggerThread::wake() {
  const std::lock_guard lock(state_->mutex);
  state_->is_awaited.notify_one();
}

void LoggerThread::flush_until(Clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  const auto is_done = [this] { return state_->is_over || state_->is_idle(); };
  if (state_->is_late && !is_done()) return;
  state_->is_late = !state_->has_progressed.wait_until(lock, deadline, is_done);
}

void LoggerThread::finish(RunOutcome outcome) {
  const std::lock_guard lock(state_->mutex);
  if (state_->outcome) return;
  state_->outcome = outcome;
  state_->is_awaited.notify_one();
}

void LoggerThread::wait_for_end(Clock::time_point asked) {
  if (!thread_.joinable()) return;
  const auto deadline = asked + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(limits_.finish_wait));
  std::unique_lock lock(state_->mutex);
  State& state = *state_;
  if (state.has_progressed.wait_until(lock, deadline, [&] { return state.is_over; })) {
    lock.unlock();
    thread_.join();
  } else {
    state.is_left_behind = true;
    // never freed: the thread may still return from its call, at any moment of the process's exit
    static auto& left_behind = *new std::vector<std::shared_ptr<State>>;
    left_behind.push_back(state_);
    lock.unlock();
    thread_.detach();
  }
  tell_what_is_lost(state);
}

/// Called at the end, when only an abandoned thread may still return.
void LoggerThread::tell_what_is_lost(State& state) const {
  const std::lock_guard lock(state.mutex);
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (state.is_left_behind) {
    add("did not finish within " + short_text(limits_.finish_wait) + " s and was abandoned");
    if (!state.calls.empty()) add(entries(state.calls.size()) + " waited for it and are lost");
  }
  if (state.num_dropped > 0) add("was too slow for " + entries(state.num_dropped));
  if (state.num_missed > 0) add("missed " + entries(state.num_missed) + " after it had failed");
  if (!text.empty()) log::warn(state.name + " " + text);
}

}  // namespace titan::core
