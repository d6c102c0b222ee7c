#include "live_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include <titan/error.h>
#include <titan/program/terminal.h>

namespace titan::commands {
namespace {

std::string system_message() {
  return std::generic_category().message(errno);
}

sigset_t served_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH})
    sigaddset(&set, signal);
  return set;
}

winsize window_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}

std::string key_name(std::string_view bytes) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"\033[A", "up"},       {"\033[B", "down"},       {"\033OA", "up"},   {"\033OB", "down"},
      {"\033[5~", "page up"}, {"\033[6~", "page down"}, {"\033[H", "home"}, {"\003", "q"}};
  for (const auto& [sequence, name] : kNames)
    if (bytes == sequence) return name;
  return bytes.starts_with('\033') ? std::string() : std::string(bytes.substr(0, 1));
}

}  // namespace

LiveScreen::LiveScreen() {
  TITAN_CHECK(::tcgetattr(STDIN_FILENO, &mode_before_) == 0, io,
              "cannot read the settings of the terminal: ", system_message());
  const sigset_t served = served_signals();
  TITAN_CHECK(::sigprocmask(SIG_BLOCK, &served, &mask_before_) == 0, io,
              "cannot block signals: ", system_message());
  signals_ = ::signalfd(-1, &served, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) {
    const std::string reason = system_message();
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    fail(ErrorKind::io, "cannot wait for signals: ", reason);
  }
  enter();
}

LiveScreen::~LiveScreen() {
  leave();
  ::close(signals_);
  // a termination signal that is pending ends the process here, with the terminal restored
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void LiveScreen::enter() {
  termios mode = mode_before_;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  mode.c_cc[VMIN] = 0;
  mode.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  print_raw("\033[?1049h\033[?25l", stdout);
  std::fflush(stdout);
}

void LiveScreen::leave() const {
  print_raw("\033[?25h\033[?1049l", stdout);
  std::fflush(stdout);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &mode_before_);
}

size_t LiveScreen::columns() const {
  const size_t columns = window_size().ws_col;
  return columns > 0 ? columns : 80;
}

size_t LiveScreen::rows() const {
  const size_t rows = window_size().ws_row;
  return rows > 0 ? rows : 24;
}

LiveScreen::Event LiveScreen::wait(double seconds) {
  pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}};
  const int ready = ::poll(sources, 2, static_cast<int>(seconds * 1000));
  if (ready <= 0) return Event::time;  // interrupted by a signal: treated as a timeout
  if (sources[1].revents != 0) return take_signal();
  return take_key();
}

LiveScreen::Event LiveScreen::take_signal() {
  signalfd_siginfo info;
  if (::read(signals_, &info, sizeof info) != sizeof info) return Event::time;
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGWINCH) return Event::resize;
  if (signal == SIGTSTP) {
    leave();
    ::raise(SIGSTOP);
    enter();
    return Event::resize;
  }
  end_signal_ = signal;
  return Event::end;
}

LiveScreen::Event LiveScreen::take_key() {
  char bytes[16];
  const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (count <= 0) return Event::end;
  key_ = key_name({bytes, static_cast<size_t>(count)});
  return Event::key;
}

void LiveScreen::show(const std::vector<std::string>& lines) const {
  // Terminals that support mode 2026 show all of it at once. A line is cleared before it is
  // written: after a full line some terminals would clear its last column.
  std::string text = "\033[?2026h\033[H";
  for (size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\n\033[2K" : "\033[2K") + lines[i];
  if (lines.size() < rows()) text += "\n\033[J";
  print_raw(text + "\033[?2026l", stdout);
  std::fflush(stdout);
}

}  // namespace titan::commands
