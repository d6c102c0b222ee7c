#include "time_text.h"

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <titan/program/clock.h>
#include <titan/program/quantity_text.h>
#include <titan/program/text.h>
#include <titan/program/text_table.h>
#include <titan/runs/goodput.h>
#include <titan/shown_text.h>

namespace titan::commands {
namespace {

constexpr size_t kMostOfFailure = 600;

std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string share_text(double seconds, double total) {
  return duration_text(seconds) + " (" + percent_text(seconds / total) + ")";
}

/// Seconds of rank 0 in a phase, in all steps, also those that were discarded.
double phase_seconds(const RunFolder& run, const char* phase) {
  double seconds = 0;
  for (const RunEvent& event : run.history.events) seconds += event.phase(phase);
  return seconds;
}

std::string failure_text(const FailureRecord& failure) {
  std::string text = local_time_text(failure.time, "%Y-%m-%d %H:%M:%S") + " rank " +
                     std::to_string(failure.rank) + " of " + std::to_string(failure.world_size);
  if (failure.step) text += ", step " + std::to_string(*failure.step);
  text += ": " + failure.how;
  if (!failure.error.empty()) text += ": " + first_line(failure.error);
  if (failure.error.empty() && !failure.seen.empty())
    text += "; another rank: " + first_line(failure.seen);
  return printable(text + "; " + failure.response + "; log: " + failure.log, kMostOfFailure);
}

/// "3 failures: 1 error, 2 hangs"
std::string count_text(const std::vector<FailureRecord>& failures) {
  std::map<std::string, int> kinds;
  for (const FailureRecord& failure : failures) ++kinds[kind_of(failure)];
  const auto counted = [](int count, const std::string& what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  };
  std::string text = counted(static_cast<int>(failures.size()), "failure") + ":";
  for (const auto& [kind, count] : kinds)
    text += (text.ends_with(":") ? " " : ", ") + counted(count, kind);
  return text;
}

}  // namespace

std::string time_text(const RunFolder& run) {
  const GoodputMeter meter = measure_goodput(run.history.events);
  const GoodputSeconds seconds = meter.seconds();
  const double total = seconds.total();
  if (meter.sessions().empty() || total <= 0) return "";
  const auto is_shown = [&](double lost) { return lost / total > 5e-4; };
  std::vector<TextRow> rows = {{"kept steps", share_text(seconds.productive, total)}};
  for (size_t i = 0; i < kNumLostTimes; ++i)
    if (is_shown(seconds.lost[i]))
      rows.push_back({to_string(static_cast<LostTime>(i)), share_text(seconds.lost[i], total)});
  const double data = phase_seconds(run, "data"),
               communication = phase_seconds(run, "communication");
  if (is_shown(data)) rows.push_back({"in steps: waiting for data", share_text(data, total)});
  if (is_shown(communication))
    rows.push_back(
        {"in steps: collectives, and waiting for ranks", share_text(communication, total)});
  std::string text = "goodput " + percent_text(seconds.share()) + " of " + duration_text(total) +
                     " in " + std::to_string(meter.sessions().size()) +
                     (meter.sessions().size() == 1 ? " session\n" : " sessions\n") +
                     text_table(rows, "  ");
  if (!run.failures.empty()) text += "  " + count_text(run.failures) + "\n";
  for (const FailureRecord& failure : run.failures) text += "  " + failure_text(failure) + "\n";
  return text;
}

}  // namespace titan::commands
