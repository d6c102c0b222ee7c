// What a host's speed is measured by: tools/cost_unit.py compiles this file ten times. Never change it, or no table of costs
// can be compared with an older one. It includes the standard library alone, so that it compiles before anything is installed.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

using Cell = std::variant<std::int64_t, double, std::string, std::vector<std::string>>;

struct Row {
  std::string name;
  std::map<std::string, Cell> cells;
  std::optional<std::function<Cell(const Row&)>> rule;
};

template <int N>
struct Weighted {
  static double sum(const std::vector<std::shared_ptr<Row>>& rows) {
    std::unordered_map<std::string, double> sums;
    for (const auto& row : rows) {
      for (const auto& [name, cell] : row->cells) {
        std::visit(
            [&](const auto& value) {
              if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
                sums[name] += static_cast<double>(value) * N;
              } else {
                sums[name] += static_cast<double>(value.size()) / N;
              }
            },
            cell);
      }
    }
    std::vector<std::tuple<double, std::string>> sorted;
    for (auto& [name, sum] : sums) sorted.emplace_back(sum, name);
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a > b; });
    double total = Weighted<N - 1>::sum(rows);
    for (const auto& [sum, name] : sorted) total += sum;
    return total;
  }
};

template <>
struct Weighted<0> {
  static double sum(const std::vector<std::shared_ptr<Row>>&) { return 0; }
};

}  // namespace

std::string reference(const std::vector<std::shared_ptr<Row>>& rows, const std::string& pattern) {
  const std::regex expression(pattern, std::regex::ECMAScript | std::regex::icase);
  std::set<std::string> names;
  std::ostringstream text;
  for (const auto& row : rows) {
    if (std::regex_search(row->name, expression)) names.insert(std::regex_replace(row->name, expression, "$1"));
    if (row->rule) row->cells["rule"] = (*row->rule)(*row);
  }
  for (const auto& name : names) text << name << '\n';
  text << Weighted<12>::sum(rows);
  return text.str();
}
