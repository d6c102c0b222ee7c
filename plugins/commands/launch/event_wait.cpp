#include "event_wait.h"

#include <poll.h>

#include <algorithm>

namespace titan::launching {

using Clock = std::chrono::steady_clock;

Ready wait_for_events(const SignalInbox& signals, Screen& screen,
                      const std::vector<int>& descriptors,
                      const std::optional<Clock::time_point>& deadline) {
  std::vector<pollfd> ends{{signals.descriptor(), POLLIN, 0}};
  for (ScreenStream* stream : {&screen.output, &screen.errors})
    ends.push_back({stream->has_waiting() ? stream->descriptor() : -1, POLLOUT, 0});
  const size_t first = ends.size();
  for (const int descriptor : descriptors) ends.push_back({descriptor, POLLIN, 0});
  int timeout = -1;
  if (deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
    timeout = static_cast<int>(std::max<int64_t>(0, left.count()));
  }
  Ready ready{.descriptors = std::vector<bool>(descriptors.size())};
  if (::poll(ends.data(), ends.size(), timeout) <= 0) return ready;

  if (ends[1].revents != 0) screen.output.write_some();
  if (ends[2].revents != 0) screen.errors.write_some();
  ready.signals = ends[0].revents != 0;
  for (size_t i = 0; i < descriptors.size(); ++i)
    ready.descriptors[i] = ends[first + i].revents != 0;
  return ready;
}

}  // namespace titan::launching
