// Gives a command the whole terminal: the alternate screen, single keys without echo, and signals
// as events of wait(). The destructor restores all of it. Used by titan top.
#pragma once

#include <signal.h>
#include <termios.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace titan::commands {

/// At most one per process.
class LiveScreen {
 public:
  /// Why wait() returned.
  enum class Event {
    time,    ///< the time is over
    key,     ///< `key()`
    resize,  ///< also after the process was stopped and continued
    end,     ///< a termination signal, or the end of standard input
  };

  /// Standard input and output must be terminals. Throws an io Error when one cannot be used as
  /// needed.
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;

  /// Waits for the next event, at most `seconds`.
  Event wait(double seconds);
  /// A character such as "q", or "up", "down", "page up", "page down", "home"; empty for other
  /// keys.
  const std::string& key() const { return key_; }
  /// The termination signal; absent when there was none.
  std::optional<int> end_signal() const { return end_signal_; }

  size_t columns() const;
  size_t rows() const;
  /// Shows `lines` from the top, in one write.
  void show(const std::vector<std::string>& lines) const;

 private:
  void enter();
  void leave() const;
  Event take_signal();
  Event take_key();

  int signals_ = -1;
  sigset_t mask_before_;
  termios mode_before_;
  std::string key_;
  std::optional<int> end_signal_;
};

}  // namespace titan::commands
