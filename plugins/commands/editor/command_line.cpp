#include "command_line.h"

#include <titan/error.h>

#include "../common/run_config.h"

namespace titan::commands {

std::vector<std::string> values_in(const std::vector<std::string>& words, const std::string& key) {
  const std::string flag = "--" + key, joined = flag + "=";
  std::vector<std::string> values;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == flag && i + 1 < words.size())
      values.push_back(words[i + 1]);
    else if (words[i].starts_with(joined))
      values.push_back(words[i].substr(joined.size()));
  }
  return values;
}

std::optional<std::string> value_in(const std::vector<std::string>& words, const std::string& key) {
  const std::vector<std::string> values = values_in(words, key);
  if (values.empty()) return std::nullopt;
  return values.back();
}

std::map<std::string, std::string> recipe_of(const std::vector<std::string>& words) {
  const auto file = value_in(words, "job.config_file");
  if (!file) return {};
  try {
    return read_run_config(*file);
  } catch (const Error&) {  // not there yet, or being edited
    return {};
  }
}

}  // namespace titan::commands
