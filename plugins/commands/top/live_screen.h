// The terminal while a command draws on all of it: its other screen, single keys without echo, and
// signals that wait until they are asked for. Everything is put back at the end. Used by titan top.
#pragma once

#include <signal.h>
#include <termios.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace titan::commands {

/// One at a time in the process.
class LiveScreen {
 public:
  /// What happened while it waited.
  enum class Event {
    time,    ///< it is over
    key,     ///< `key()`
    resize,  ///< or the process goes on after a stop
    end,     ///< a signal asks for the end, or nobody can type any more
  };

  /// Standard input and output are terminals. Throws an io Error when they cannot be used so.
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;

  /// Waits for the next event, at most `seconds`.
  Event wait(double seconds);
  /// "q"; "up", "down", "page up", "page down" for those keys.
  const std::string& key() const { return key_; }
  /// The signal that asked for the end; absent when there was none.
  std::optional<int> end_signal() const { return end_signal_; }

  size_t columns() const;
  size_t rows() const;
  /// Shows `lines` from the top, in one piece.
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
