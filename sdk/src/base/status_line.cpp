#include <titan/status_line.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <titan/error.h>

#include "status_line_pause.h"

namespace titan {
namespace {

constexpr char kErase[] = "\r\033[K";

/// The status line on the terminal.
struct Shown {
  std::mutex mutex;
  int descriptor = -1;  // -1: there is no status line
  std::string text;
};

/// Never destroyed: an abandoned thread may still log while the process ends.
Shown& shown() {
  static Shown& instance = *new Shown;
  return instance;
}

/// Whether a status line is on the terminal that log lines go to.
std::atomic<bool> shares_terminal_with_log = false;
static_assert(std::atomic<bool>::is_always_lock_free);

bool is_same_terminal(int one, int other) {
  struct stat first {
  }, second{};
  return ::isatty(one) == 1 && ::isatty(other) == 1 && ::fstat(one, &first) == 0 &&
         ::fstat(other, &second) == 0 && first.st_rdev == second.st_rdev;
}

/// 0, or the errno.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {  // another program made the terminal non-blocking
      pollfd end{descriptor, POLLOUT, 0};
      ::poll(&end, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void require_written(int reason) {
  if (reason != 0)
    fail(ErrorKind::io, "cannot write to the terminal: ", std::generic_category().message(reason),
         " (errno ", reason, ")");
}

}  // namespace

StatusLine::StatusLine(int descriptor) : descriptor_(descriptor) {
  const std::lock_guard lock(shown().mutex);
  TITAN_CHECK(shown().descriptor < 0, plugin, "there is a status line already; use one at a time");
  shown().descriptor = descriptor;
  shares_terminal_with_log = is_same_terminal(descriptor, STDERR_FILENO);
}

StatusLine::~StatusLine() {
  const std::lock_guard lock(shown().mutex);
  shares_terminal_with_log = false;
  if (!shown().text.empty()) write_all(descriptor_, kErase);
  shown().text.clear();
  shown().descriptor = -1;
}

void StatusLine::draw(std::string text) {
  const std::lock_guard lock(shown().mutex);
  if (text == shown().text) return;
  shown().text = std::move(text);
  require_written(write_all(descriptor_, "\r" + shown().text + "\033[K"));
}

void StatusLine::write_above(std::string_view lines) {
  const std::lock_guard lock(shown().mutex);
  if (shown().text.empty()) return require_written(write_all(descriptor_, lines));
  require_written(write_all(descriptor_, std::string(kErase) + std::string(lines) + shown().text));
}

int StatusLine::columns() const {
  winsize size{};
  return ::ioctl(descriptor_, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

const char* StatusLine::eraser() noexcept {
  return shares_terminal_with_log ? kErase : "";
}

namespace log {

StatusLinePause::StatusLinePause() {
  if (!shares_terminal_with_log) return;
  shown().mutex.lock();
  is_paused_ = true;
  if (!shown().text.empty()) write_all(shown().descriptor, kErase);
}

StatusLinePause::~StatusLinePause() {
  if (!is_paused_) return;
  if (!shown().text.empty()) write_all(shown().descriptor, shown().text);
  shown().mutex.unlock();
}

}  // namespace log
}  // namespace titan
