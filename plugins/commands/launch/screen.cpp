#include "screen.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace titan::launching {

void ScreenStream::write_some() {
  // poll guarantees this much for a pipe; a file or terminal takes it too
  const size_t size = std::min<size_t>(waiting_.size() - taken_, PIPE_BUF);
  const ssize_t count = ::write(descriptor_, waiting_.data() + taken_, size);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  is_lost_ = count < 0;
  taken_ += is_lost_ ? 0 : static_cast<size_t>(count);
  if (is_lost_ || taken_ == waiting_.size())
    waiting_.clear(), taken_ = 0;
  else if (taken_ > kFull)
    waiting_.erase(0, taken_), taken_ = 0;
}

void Screen::flush(int interrupt) {
  while (output.has_waiting() || errors.has_waiting()) {
    pollfd ends[] = {{output.has_waiting() ? output.descriptor() : -1, POLLOUT, 0},
                     {errors.has_waiting() ? errors.descriptor() : -1, POLLOUT, 0},
                     {interrupt, POLLIN, 0}};
    if (::poll(ends, 3, -1) < 0 && errno != EINTR) return;
    if (ends[2].revents != 0) return;
    if (ends[0].revents != 0) output.write_some();
    if (ends[1].revents != 0) errors.write_some();
  }
}

}  // namespace titan::launching
