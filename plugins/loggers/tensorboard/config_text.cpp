// See config_text.h.
#include "config_text.h"

#include <algorithm>
#include <string_view>

namespace titan::loggers {
namespace {

/// Sections without influence on training results.
constexpr std::string_view kBesideTraining[] = {
    "job", "logger", "metrics", "profiling", "comm", "checkpoint", "memory_estimation", "plugins"};

void flatten(const std::string& prefix, const Value& value, Hparams& leaves) {
  if (!value.is_map()) {
    leaves.emplace_back(prefix, value);
    return;
  }
  for (const auto& [name, member] : value.as_map())
    flatten(prefix.empty() ? name : prefix + "." + name, member, leaves);
}

/// Writes characters with a meaning in Markdown or HTML as character references.
std::string as_plain_markdown(std::string_view text) {
  constexpr std::string_view kActedOn = "\\`*_{}[]<>()#+-.!|&~:\"'";
  std::string result;
  for (const char c : text) {
    if (kActedOn.find(c) != kActedOn.npos || static_cast<unsigned char>(c) < ' ')
      result += "&#" + std::to_string(static_cast<unsigned char>(c)) + ";";
    else
      result += c;
  }
  return result;
}

}  // namespace

std::string config_as_json(const Value& config) {
  return "```json\n" + to_json(config, 2) + "\n```\n";
}

std::vector<std::pair<std::string, std::string>> config_as_tables(const Value& config) {
  std::vector<std::pair<std::string, std::string>> tables;
  if (!config.is_map()) return tables;
  for (const auto& [section, content] : config.as_map()) {
    Hparams leaves;
    flatten("", content, leaves);
    if (leaves.empty()) continue;
    std::string table = "| key | value |\n|---|---|\n";
    for (const auto& [key, value] : leaves)
      table += "| " + as_plain_markdown(key) + " | " + as_plain_markdown(to_json(value)) + " |\n";
    tables.emplace_back(section, std::move(table));
  }
  return tables;
}

Hparams config_as_hparams(const Value& config) {
  Hparams leaves;
  if (!config.is_map()) return leaves;
  for (const auto& [section, content] : config.as_map())
    if (std::find(std::begin(kBesideTraining), std::end(kBesideTraining), section) ==
        std::end(kBesideTraining))
      flatten(section, content, leaves);
  std::erase_if(leaves,
                [](const auto& leaf) { return leaf.second.is_null() || leaf.second.is_list(); });
  return leaves;
}

}  // namespace titan::loggers
