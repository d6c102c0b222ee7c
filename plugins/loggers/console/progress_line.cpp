// See progress_line.h.
#include "progress_line.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <titan/shown_text.h>

namespace titan::loggers {
namespace {

constexpr double kWindow = 30;    // window of the rate in seconds
constexpr double kSpacing = 0.5;  // seconds between two recorded times

struct Part {
  const char* color;
  std::string text;
};

std::string two_digits(int64_t number) {
  return (number < 10 ? "0" : "") + std::to_string(number);
}

std::vector<Part> parts_of(const Progress& progress) {
  std::vector<Part> parts;
  std::string step = "step " + std::to_string(progress.step);
  if (progress.num_steps > 0) {
    const double share =
        static_cast<double>(progress.step) / static_cast<double>(progress.num_steps);
    step += "/" + std::to_string(progress.num_steps) + " " +  // 100% only when all steps are done
            std::to_string(static_cast<int64_t>(100 * share)) + "%";
  }
  parts.push_back({kRed, step});
  if (progress.seconds_left)
    parts.push_back({kYellow, time_text(*progress.seconds_left) + " left"});
  if (progress.loss) parts.push_back({kGreen, "loss " + fixed(*progress.loss, 5)});
  if (progress.tokens_per_second)
    parts.push_back({kBlue, with_thousands(*progress.tokens_per_second, 0) + " tokens/s"});
  if (progress.memory_gib)
    parts.push_back({kTurquoise, "memory " + fixed(*progress.memory_gib, 2) + "GiB"});
  return parts;
}

}  // namespace

void StepRate::add(int64_t step, double time) {
  // replaces the last entry until it is kSpacing after the one before
  if (times_.size() >= 2 && times_.back().second - times_[times_.size() - 2].second < kSpacing)
    times_.pop_back();
  times_.emplace_back(step, time);
  while (times_.size() > 2 && times_[1].second <= time - kWindow) times_.pop_front();
}

std::optional<double> StepRate::steps_per_second() const {
  if (times_.size() < 2) return std::nullopt;
  const double seconds = times_.back().second - times_.front().second;
  const auto steps = static_cast<double>(times_.back().first - times_.front().first);
  if (seconds <= 0 || steps <= 0) return std::nullopt;
  return steps / seconds;
}

std::string time_text(double seconds) {
  constexpr double kMost = 1000 * 86400.0;
  if (!(seconds < kMost)) return ">1000d";
  const auto all = static_cast<int64_t>(std::max(0.0, std::ceil(seconds)));
  const int64_t minutes = all / 60, hours = minutes / 60, days = hours / 24;
  if (minutes == 0) return std::to_string(all) + "s";
  if (hours == 0) return std::to_string(minutes) + "m" + two_digits(all % 60) + "s";
  if (days == 0) return std::to_string(hours) + "h" + two_digits(minutes % 60) + "m";
  return std::to_string(days) + "d" + two_digits(hours % 24) + "h";
}

std::string cut_to_columns(const std::string& text, size_t columns) {
  if (columns_of(text) <= columns) return text;
  std::string cut;
  size_t taken = 0;
  for (const std::string& character : printable_characters(text)) {
    taken += columns_of(character);
    if (taken > columns) break;
    cut += character;
  }
  return cut;
}

std::string format_progress_line(const Progress& progress, size_t columns, Style style) {
  std::string line;
  size_t room = columns;
  for (const Part& part : parts_of(progress)) {
    const std::string text = cut_to_columns((line.empty() ? "" : "  ") + part.text, room);
    if (style == Style::colored) line += part.color;
    line += text;
    room -= std::min(room, columns_of(text));
    if (room == 0) break;
  }
  return line + (style == Style::colored ? kResetColor : "");
}

}  // namespace titan::loggers
