// Says what a run waits for when that takes long. Used by the window feed.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace titan::core {

/// Measures from its construction on. Thread: one at a time.
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

/// Looks at a notice while the thread that made this is busy.
class NoticeThread {
 public:
  /// `notice` outlives this. `what` is called on a thread of its own.
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
