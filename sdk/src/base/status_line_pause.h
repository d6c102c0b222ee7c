// Hides the status line while a log line is written. Used by log.cpp.
#pragma once

namespace titan::log {

/// While alive, the status line is removed from the terminal of standard error, if it is there.
class StatusLinePause {
 public:
  StatusLinePause();
  ~StatusLinePause();
  StatusLinePause(const StatusLinePause&) = delete;

 private:
  bool is_paused_ = false;
};

}  // namespace titan::log
