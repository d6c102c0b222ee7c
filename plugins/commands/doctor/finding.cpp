#include "finding.h"

#include <algorithm>

#include <titan/program/text_table.h>

namespace titan::commands {
namespace {

const char* word_of(Health health) {
  return health == Health::ok ? "ok" : health == Health::warning ? "warning" : "problem";
}

std::string counted(int count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

int Findings::count(Health health) const {
  return static_cast<int>(std::count_if(
      all_.begin(), all_.end(), [&](const Finding& finding) { return finding.health == health; }));
}

std::string Findings::text() const {
  size_t widest = 0;
  for (const Finding& finding : all_) widest = std::max(widest, finding.name.size());
  std::string text;
  for (const Finding& finding : all_) {
    std::string line = word_of(finding.health);
    line.resize(9, ' ');
    line += finding.name + std::string(widest + 2 - finding.name.size(), ' ') +
            printable(finding.value, std::string::npos);
    text += line + "\n";
    for (const auto& [label, part] :
         {std::pair("needs", finding.limit), std::pair("breaks", finding.breaks),
          std::pair("remedy", finding.remedy)}) {
      if (finding.health == Health::ok || part.empty()) continue;
      text += "           " + std::string(label) + ": " + printable(part, std::string::npos) + "\n";
    }
  }
  return text + "\n" + counted(count(Health::problem), "problem") + ", " +
         counted(count(Health::warning), "warning") + "\n";
}

Value Findings::json() const {
  Value::List checks;
  for (const Finding& finding : all_) {
    Value check = Value::map(
        {{"name", finding.name}, {"health", word_of(finding.health)}, {"value", finding.value}});
    if (!finding.limit.empty()) check["limit"] = finding.limit;
    if (!finding.breaks.empty()) check["breaks"] = finding.breaks;
    if (!finding.remedy.empty()) check["remedy"] = finding.remedy;
    checks.push_back(std::move(check));
  }
  return Value::map({{"problems", count(Health::problem)},
                     {"warnings", count(Health::warning)},
                     {"checks", std::move(checks)}});
}

}  // namespace titan::commands
