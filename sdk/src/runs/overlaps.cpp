#include <titan/runs/overlaps.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

namespace titan {
namespace {

struct Span {
  int64_t begin = 0, end = 0;  // nanoseconds
  size_t index = 0;            // of its event
};

/// Times are in microseconds with three decimals.
int64_t nanoseconds(std::string_view text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::llround(1000 * number);
}

/// Finds the spans of one thread that end later than the span that they begin in.
void find_overlaps(std::vector<Span>& spans, std::vector<size_t>& found) {
  constexpr int64_t kRounding = 2;
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<int64_t> ends;
  for (const Span& span : spans) {
    while (!ends.empty() && ends.back() <= span.begin + kRounding) ends.pop_back();
    if (!ends.empty() && span.end > ends.back() + kRounding)
      found.push_back(span.index);
    else
      ends.push_back(span.end);
  }
}

std::string async_event(char end, std::string_view event, size_t id, int64_t time) {
  char ts[32];
  std::snprintf(ts, sizeof ts, "%lld.%03lld", static_cast<long long>(time / 1000),
                static_cast<long long>(time % 1000));
  std::string text = "{\"ph\": \"";
  text += end;
  text.append("\", \"cat\": \"async\", \"name\": \"").append(member_text(event, "name"));
  text.append("\", \"id\": ").append(std::to_string(id));
  text.append(", \"pid\": ").append(member_text(event, "pid"));
  text.append(", \"tid\": ").append(member_text(event, "tid"));
  return text.append(", \"ts\": ").append(ts).append("}");
}

}  // namespace

std::vector<std::string> take_overlaps(TraceParts& parts) {
  std::map<std::pair<std::string_view, std::string_view>, std::vector<Span>> threads;
  for (size_t i = 0; i < parts.events.size(); ++i) {
    const std::string_view event = parts.events[i];
    if (member_text(event, "ph") != "X") continue;
    const int64_t begin = nanoseconds(member_text(event, "ts"));
    threads[{member_text(event, "pid"), member_text(event, "tid")}].push_back(
        {begin, begin + nanoseconds(member_text(event, "dur")), i});
  }
  std::vector<size_t> found;
  for (auto& [thread, spans] : threads) find_overlaps(spans, found);
  std::sort(found.begin(), found.end());
  std::vector<std::string> events;
  for (const size_t i : found) {
    const std::string_view event = parts.events[i];
    const int64_t begin = nanoseconds(member_text(event, "ts"));
    const int64_t end = begin + nanoseconds(member_text(event, "dur"));
    const size_t id = events.size() / 2 + 1;
    events.push_back(async_event('b', event, id, begin));
    events.push_back(async_event('e', event, id, end));
    parts.events[i] = {};
  }
  std::erase_if(parts.events, [](std::string_view event) { return event.empty(); });
  return events;
}

}  // namespace titan
