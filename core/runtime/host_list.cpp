#include "core/runtime/host_list.h"

#include <algorithm>
#include <optional>

#include <titan/error.h>
#include <titan/program/environment.h>

namespace titan::core {
namespace {

constexpr size_t kMostHosts = 65536;
constexpr int64_t kMostTasks = 65536;

/// Where errors of one list are reported.
struct Source {
  std::string_view list;
  const std::string& variable;

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::config, "environment variable ", variable, " = '", list.substr(0, 200),
         list.size() > 200 ? "..." : "", "': ", parts...);
  }
};

/// Cuts at commas outside brackets.
std::vector<std::string_view> split(std::string_view list, const Source& source) {
  std::vector<std::string_view> items;
  size_t start = 0;
  bool is_inside = false;
  for (size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (i < list.size() && (c == '[' || c == ']')) {
      if (is_inside == (c == '[')) source.refuse("the brackets do not match");
      is_inside = c == '[';
    }
    if (c != ',' || (is_inside && i < list.size())) continue;
    if (is_inside) source.refuse("the brackets do not match");
    if (i == start) source.refuse("there is an empty name");
    items.push_back(list.substr(start, i - start));
    start = i + 1;
  }
  return items;
}

std::optional<int64_t> digits(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  int64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = 10 * number + (c - '0');
  }
  return number;
}

/// The numbers between two brackets: "01-04,7" -> 01 02 03 04 7.
std::vector<std::string> numbers(std::string_view inside, const Source& source) {
  std::vector<std::string> result;
  for (size_t start = 0; start <= inside.size();) {
    const size_t comma = std::min(inside.find(',', start), inside.size());
    const std::string_view item = inside.substr(start, comma - start);
    const size_t dash = item.find('-');
    const std::string_view low_text = item.substr(0, dash);
    const auto low = digits(low_text);
    const auto high = dash == std::string_view::npos ? low : digits(item.substr(dash + 1));
    if (!low || !high) source.refuse("'", item, "' is not a number or a range of numbers");
    if (*high < *low) source.refuse("the range '", item, "' runs backwards");
    if (*high - *low >= static_cast<int64_t>(kMostHosts - result.size()))
      source.refuse("more than ", kMostHosts, " hosts");
    for (int64_t i = *low; i <= *high; ++i) {
      std::string number = std::to_string(i);
      if (number.size() < low_text.size()) number.insert(0, low_text.size() - number.size(), '0');
      result.push_back(std::move(number));
    }
    start = comma + 1;
  }
  return result;
}

/// One name with any number of brackets.
std::vector<std::string> expand_name(std::string_view name, const Source& source) {
  std::vector<std::string> names{""};
  while (!name.empty()) {
    const size_t open = std::min(name.find('['), name.size());
    for (std::string& head : names) head += name.substr(0, open);
    if (open == name.size()) break;
    const size_t close = name.find(']', open);
    const std::vector<std::string> tails = numbers(name.substr(open + 1, close - open - 1), source);
    if (names.size() * tails.size() > kMostHosts) source.refuse("more than ", kMostHosts, " hosts");
    std::vector<std::string> longer;
    for (const std::string& head : names)
      for (const std::string& tail : tails) longer.push_back(head + tail);
    names = std::move(longer);
    name.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view list, const std::string& variable) {
  const Source source{list, variable};
  if (list.find_first_of(" \t\n") != std::string_view::npos)
    source.refuse("there is a blank in it");
  std::vector<std::string> hosts;
  for (const std::string_view name : split(list, source)) {
    std::vector<std::string> expanded = expand_name(name, source);
    if (hosts.size() + expanded.size() > kMostHosts)
      source.refuse("more than ", kMostHosts, " hosts");
    std::move(expanded.begin(), expanded.end(), std::back_inserter(hosts));
  }
  return hosts;
}

std::vector<int> expand_tasks_per_node(std::string_view list, const std::string& variable) {
  const Source source{list, variable};
  std::vector<int> tasks;
  for (const std::string_view item : split(list, source)) {
    const size_t open = std::min(item.find("(x"), item.size());
    const auto count = digits(item.substr(0, open));
    std::optional<int64_t> times = 1;
    if (open < item.size())
      times =
          item.back() == ')' ? digits(item.substr(open + 2, item.size() - open - 3)) : std::nullopt;
    if (!count || !times) source.refuse("'", item, "' is not of the form 4 or 4(x2)");
    if (*count > kMostTasks || *times > static_cast<int64_t>(kMostHosts - tasks.size()))
      source.refuse("more than ", kMostTasks, " tasks on a node or ", kMostHosts, " nodes");
    tasks.insert(tasks.end(), static_cast<size_t>(*times), static_cast<int>(*count));
  }
  return tasks;
}

}  // namespace titan::core
