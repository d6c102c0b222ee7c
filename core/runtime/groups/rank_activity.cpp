#include "core/runtime/groups/rank_activity.h"

#include <algorithm>
#include <vector>

namespace titan::core {
namespace {

std::string describe(const dist::CommRecord& record) {
  return record.operation + " number " + std::to_string(record.sequence) + " of group '" +
         record.group + "'";
}

}  // namespace

std::string describe_activity(const dist::Mesh* mesh, int64_t step, std::string_view stage) {
  std::string doing = step == 0 ? "starting" : "in step " + std::to_string(step);
  if (step == 0 && !stage.empty()) doing += " (" + std::string(stage) + ")";
  if (!mesh) return doing;
  if (const std::string activity = mesh->recorder().activity(); !activity.empty())
    doing += ", in " + activity;
  const std::vector<dist::CommRecord> open = mesh->recorder().in_flight();
  // a sent message is in flight until it is received, but seldom waited for
  const auto waits = std::find_if(open.begin(), open.end(), [](const dist::CommRecord& record) {
    return !record.operation.starts_with("send to ");
  });
  if (open.empty()) return doing + ", in no collective";
  return doing + ", waits in " + describe(waits == open.end() ? open.front() : *waits);
}

}  // namespace titan::core
