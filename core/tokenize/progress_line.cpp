#include "core/tokenize/progress_line.h"

#include <cmath>
#include <cstdio>

namespace titan::core {
namespace {

template <class... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, arguments...);
  return text;
}

/// Seconds until all is done when the rest goes as fast as this run did so far.
std::optional<double> seconds_left(const TokenizationState& state, const SourceSize& size,
                                   double seconds) {
  const auto at_this_rate = [&](int64_t before, int64_t now, int64_t all) {
    return seconds / static_cast<double>(now - before) * static_cast<double>(all - now);
  };
  constexpr int64_t kLeastShards = 3;
  if (size.documents && state.documents > state.old_documents)
    return at_this_rate(state.old_documents, state.documents, *size.documents);
  if (size.shards && state.shard - state.old_shard >= kLeastShards)
    return at_this_rate(state.old_shard, state.shard, *size.shards);
  return std::nullopt;
}

}  // namespace

std::string with_commas(int64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool is_inside = i > 0 && digits[i - 1] != '-';
    if (is_inside && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string short_count(int64_t count) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  auto number = static_cast<double>(count);
  size_t unit = 0;
  for (; number >= 999.5 && unit < 4; ++unit) number /= 1000;
  if (unit == 0) return std::to_string(count);
  return format(number < 9.995 ? "%.2f" : number < 99.95 ? "%.1f" : "%.0f", number) + kUnits[unit];
}

std::string duration_text(double seconds) {
  const int64_t all = std::llround(seconds);
  const int64_t days = all / 86400, hours = all / 3600 % 24, minutes = all / 60 % 60;
  const std::string end = format("%02d", static_cast<int>(all % 60));
  if (days == 0 && hours == 0) return std::to_string(minutes) + ":" + end;
  return (days ? std::to_string(days) + " d " : "") + std::to_string(hours) + ":" +
         format("%02d", static_cast<int>(minutes)) + ":" + end;
}

std::string progress_line(const TokenizationState& state, const SourceSize& size, double seconds) {
  std::string line = with_commas(state.documents);
  if (size.documents && *size.documents > 0) {
    const auto share = static_cast<int>(100 * static_cast<double>(state.documents) /
                                        static_cast<double>(*size.documents));
    line += " of " + with_commas(*size.documents) + format(" documents (%d %%)", share);
  } else {
    line += " documents";
    if (size.shards)
      line += ", " + with_commas(state.shard) + " of " + with_commas(*size.shards) + " shards";
  }
  line += ", " + short_count(state.tokens) + " tokens";
  if (seconds <= 0) return line;
  const auto rate = [&](int64_t now, int64_t before) {
    return static_cast<double>(now - before) / seconds;
  };
  if (state.text_bytes > 0)
    line += format(", %.1f MB/s", rate(state.text_bytes, state.old_text_bytes) / 1e6);
  line += ", " + with_commas(std::llround(rate(state.documents, state.old_documents))) +
          " documents/s, " + short_count(std::llround(rate(state.tokens, state.old_tokens))) +
          " tokens/s";
  if (const auto left = seconds_left(state, size, seconds))
    line += ", " + duration_text(*left) + " left";
  return line;
}

}  // namespace titan::core
