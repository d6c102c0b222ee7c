// Logs what a run waits for when it waits long. Used by the window feed.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace titan::core {

/// Measures the time since its construction. Thread: one at a time.
class SlowNotice {
 public:
  using What = std::function<std::string()>;

  /// The first notice is due after `seconds`, each further one after twice the time.
  explicit SlowNotice(double seconds);

  /// Logs a warning with the seconds passed and `what`, when a notice is due.
  void look(const What& what);
  double seconds_to_next() const;

 private:
  double begin_;
  double due_;  // since `begin_`
};

/// A thread that logs due notices while the creating thread is busy.
class NoticeThread {
 public:
  /// `notice` outlives this. `what` is called on this object's thread.
  NoticeThread(SlowNotice& notice, SlowNotice::What what);
  ~NoticeThread();
  NoticeThread(const NoticeThread&) = delete;

 private:
  void run();

  SlowNotice& notice_;
  SlowNotice::What what_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace titan::core
