// The environment variables of a process as a value: read once, looked up by name, with errors that
// name variable and value. Used by code that is configured through the environment; tests construct
// their own.
#pragma once

#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <titan/error.h>

namespace titan {

/// Parses `text` as an integer in [lowest, highest]. Throws a config Error otherwise; `what` names
/// the number in it: "environment variable RANK", "--nproc".
inline int64_t parse_integer(std::string_view text, const std::string& what, int64_t lowest,
                             int64_t highest) {
  int64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  TITAN_CHECK(error == std::errc() && end == last && number >= lowest && number <= highest, config,
              what, " = '", text, "' is not an integer from ", lowest, " to ", highest);
  return number;
}

class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string> variables)
      : variables_(std::move(variables)) {}

  /// The current variables of this process.
  static Environment of_process() {
    Environment environment;
    for (char** entry = ::environ; entry && *entry; ++entry) {
      const std::string_view text(*entry);
      const size_t equals = text.find('=');
      if (equals != std::string_view::npos)
        environment.variables_.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return environment;
  }

  const std::map<std::string, std::string>& variables() const { return variables_; }

  /// Absent if the variable is unset or empty: launchers and shells do not distinguish the two.
  std::optional<std::string> get(const std::string& name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }

  bool has(const std::string& name) const { return get(name).has_value(); }

  /// Throws a config Error if the value is not an integer within the limits.
  std::optional<int> integer(const std::string& name, int lowest, int highest) const {
    const std::optional<std::string> text = get(name);
    if (!text) return std::nullopt;
    return static_cast<int>(parse_integer(*text, "environment variable " + name, lowest, highest));
  }

 private:
  std::map<std::string, std::string> variables_;
};

}  // namespace titan
