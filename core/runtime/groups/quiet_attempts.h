// Keeps attempts to connect out of the log. Used where the store is connected to.
#pragma once

#include <mutex>

#include <c10/util/Logging.h>

#include <titan/program/environment.h>

namespace titan::core {

/// While one lives, c10d does not log its warnings and errors with the stack of each attempt,
/// unless TORCH_CPP_LOG_LEVEL sets a level: the error reports the outcome of the attempts in one
/// sentence.
class QuietAttempts {
 public:
  QuietAttempts() {
    const std::lock_guard lock(mutex_);
    if (num_alive_++ > 0) return;
    before_ = FLAGS_caffe2_log_level;
    if (!Environment::of_process().get("TORCH_CPP_LOG_LEVEL"))
      FLAGS_caffe2_log_level = c10::GLOG_FATAL;
  }
  ~QuietAttempts() {
    const std::lock_guard lock(mutex_);
    if (--num_alive_ == 0) FLAGS_caffe2_log_level = before_;
  }
  QuietAttempts(const QuietAttempts&) = delete;
  QuietAttempts& operator=(const QuietAttempts&) = delete;

 private:
  // the level is of the process, and several threads connect
  inline static std::mutex mutex_;
  inline static int num_alive_ = 0, before_ = 0;
};

}  // namespace titan::core
