// What log.cpp puts around a log line.
#pragma once

namespace titan::log {

/// While alive, the status line is not on the terminal behind standard error, if that is where one
/// is.
class StatusLinePause {
 public:
  StatusLinePause();
  ~StatusLinePause();
  StatusLinePause(const StatusLinePause&) = delete;

 private:
  bool is_paused_ = false;
};

}  // namespace titan::log
