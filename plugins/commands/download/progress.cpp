#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/quantity_text.h>
#include <titan/program/terminal.h>

namespace titan::download {
namespace {

constexpr double kBarInterval = 0.2, kLineInterval = 5;
constexpr double kRateWindow = 10;  // seconds
constexpr int kNarrowestBar = 5, kWidestBar = 30;

int terminal_width() {
  winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(Show how, size_t num_files, int64_t total_bytes)
    : how_(how), num_files_(num_files), total_(total_bytes) {
  samples_.emplace_back(monotonic_seconds(), 0);
}

Progress::~Progress() {
  clear_bar();
}

void Progress::clear_bar() {
  if (!std::exchange(has_bar_, false)) return;
  redraw_line("");
}

void Progress::say(const std::string& line) {
  if (how_ == Show::nothing) return;
  const std::lock_guard lock(screen_);
  clear_bar();
  log::info(line);
}

void Progress::warn(const std::string& line) {
  const std::lock_guard lock(screen_);
  clear_bar();
  log::warn(line);
}

double Progress::interval() const {
  return how_ == Show::bar ? kBarInterval : kLineInterval;
}

std::optional<double> Progress::rate() {
  const double now = monotonic_seconds();
  samples_.emplace_back(now, received_);
  while (samples_.size() > 2 && samples_[1].first < now - kRateWindow) samples_.pop_front();
  const auto [then, before] = samples_.front();
  const auto bytes = static_cast<double>(samples_.back().second - before);
  if (now - then < kBarInterval / 2 || bytes <= 0) return std::nullopt;
  return bytes / (now - then);
}

double Progress::share() const {
  if (total_ == 0) return 1;
  return std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0);
}

std::string Progress::facts() {
  const int64_t done = done_;
  const std::optional<double> speed = rate();
  char percent[16];
  std::snprintf(percent, sizeof percent, "%.1f %%", 100 * share());
  std::string text = std::string(percent) + "  " + bytes_text(static_cast<double>(done)) + " of " +
                     bytes_text(static_cast<double>(total_)) + "  " + std::to_string(files_) + "/" +
                     std::to_string(num_files_) + " files";
  if (speed)
    text += "  " + bytes_text(*speed) + "/s  ETA " +
            duration_text(static_cast<double>(std::max<int64_t>(total_ - done, 0)) / *speed);
  return text;
}

void Progress::show() {
  if (how_ == Show::nothing) return;
  const std::lock_guard lock(screen_);
  std::string line = facts();
  if (how_ == Show::lines) return log::info(line);
  const int width = terminal_width();
  const int room = std::min(kWidestBar, width - static_cast<int>(line.size()) - 4);
  if (room >= kNarrowestBar) {
    const int filled = static_cast<int>(std::lround(share() * room));
    line = "[" + std::string(filled, '#') + std::string(room - filled, ' ') + "] " + line;
  }
  line.resize(std::min(line.size(), static_cast<size_t>(width - 1)));
  redraw_line(line);
  has_bar_ = true;
}

}  // namespace titan::download
