#include "memory_table.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <titan/program/quantity_text.h>
#include <titan/program/text_table.h>
#include <titan/program/units.h>

#include "memory_snapshot.h"

namespace titan::profiling {
namespace {

std::string mib(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(bytes) / kMiB);
  return text;
}

std::string place_of(const MemoryPeakReport& peak) {
  std::string text = peak.doing.empty() ? "" : ", in " + peak.doing;
  if (!peak.layer.empty()) text += ", in " + peak.layer;
  return text;
}

}  // namespace

std::string memory_table(const MemoryPeakReport& peak, const std::vector<std::string>& layers) {
  constexpr MemoryUse kUses[] = {MemoryUse::parameters,       MemoryUse::gradients,
                                 MemoryUse::optimizer_states, MemoryUse::activations,
                                 MemoryUse::communication,    MemoryUse::temporary};
  std::vector<MemoryUse> uses;
  for (const MemoryUse use : kUses)
    if (std::any_of(peak.parts.begin(), peak.parts.end(),
                    [&](const auto& part) { return part.first.second == use; }))
      uses.push_back(use);
  std::vector<TextRow> rows = {{"MiB"}};
  for (const MemoryUse use : uses) rows.front().push_back(name_of_use(use));
  rows.front().push_back("all");
  std::vector<int64_t> totals(uses.size() + 1);
  const auto add_row = [&](const std::string& layer, const std::string& name) {
    TextRow row = {name};
    int64_t total = 0;
    for (size_t i = 0; i < uses.size(); ++i) {
      const auto part = peak.parts.find({layer, uses[i]});
      const int64_t bytes = part == peak.parts.end() ? 0 : part->second;
      row.push_back(mib(bytes));
      totals[i] += bytes;
      total += bytes;
    }
    totals.back() += total;
    row.push_back(mib(total));
    rows.push_back(std::move(row));
  };
  for (const std::string& layer : layers) add_row(layer, layer);
  add_row("", "outside of layers");
  rows.push_back({"all"});
  for (const int64_t total : totals) rows.back().push_back(mib(total));
  return with_commas(peak.bytes) + " bytes at the peak" + place_of(peak) + "\n" +
         text_table(std::move(rows), "  ");
}

}  // namespace titan::profiling
