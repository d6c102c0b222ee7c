#include "core/data/slow_notice.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <titan/log.h>
#include <titan/program/clock.h>

#include <titan/program/stop_signals.h>

namespace titan::core {

SlowNotice::SlowNotice(double seconds) : begin_(monotonic_seconds()), due_(seconds) {}

double SlowNotice::seconds_to_next() const {
  return std::max(0.0, begin_ + due_ - monotonic_seconds());
}

void SlowNotice::look(const What& what) {
  const double seconds = monotonic_seconds() - begin_;
  if (seconds < due_) return;
  while (due_ <= seconds) due_ = std::max(1e-3, 2 * due_);
  log::warn("waiting for " + std::to_string(static_cast<int64_t>(seconds)) + " s: " + what());
}

NoticeThread::NoticeThread(SlowNotice& notice, SlowNotice::What what)
    : notice_(notice), what_(std::move(what)), thread_([this] { run(); }) {}

NoticeThread::~NoticeThread() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void NoticeThread::run() {
  block_signals();
  std::unique_lock lock(mutex_);
  while (!has_ended_) {
    ended_.wait_for(lock, std::chrono::duration<double>(notice_.seconds_to_next()));
    if (!has_ended_) notice_.look(what_);
  }
}

}  // namespace titan::core
