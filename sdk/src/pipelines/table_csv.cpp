// See table_csv.h.
#include <titan/pipelines/table_csv.h>

namespace titan {
namespace {

bool is_compute(const PipelineAction& action) {
  using Kind = PipelineAction::Kind;
  return action.kind == Kind::forward || action.kind == Kind::backward ||
         action.kind == Kind::input_grad || action.kind == Kind::weight_grad;
}

}  // namespace

std::string to_csv(const PipelineTable& table) {
  std::string text;
  for (const auto& row : table) {
    const char* before = "";
    for (size_t i = 0; i < row.size(); ++i) {
      text += before;
      before = ",";
      if (row[i].overlaps_next && i + 1 < row.size()) {
        text += "(" + to_string(row[i]) + ";" + to_string(row[i + 1]) + ")OVERLAP_F_B";
        ++i;
      } else {
        text += to_string(row[i]);
      }
    }
    text += "\n";
  }
  return text;
}

PipelineTable compute_table(const PipelinePlan& plan) {
  PipelineTable table;
  for (const auto& row : plan.actions) {
    auto& cells = table.emplace_back();
    for (const PipelineAction& action : row)
      if (is_compute(action)) cells.push_back(action);
  }
  return table;
}

}  // namespace titan
