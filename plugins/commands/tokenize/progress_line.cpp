#include "progress_line.h"

#include <cmath>
#include <cstdio>

#include <titan/program/quantity_text.h>

namespace titan::tokenising {
namespace {

template <class... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, arguments...);
  return text;
}

/// Remaining seconds at the average speed of this run.
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

}  // namespace titan::tokenising
