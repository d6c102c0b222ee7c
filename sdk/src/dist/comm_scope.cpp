#include "comm_scope.h"

#include <string>
#include <utility>
#include <vector>

#include <ATen/record_function.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

namespace titan::dist {
namespace {

/// Ranks as torch describes them, by start and stride.
struct RankRange {
  int start = -1, stride = -1;  // -1: not evenly spaced, or unknown
};

RankRange range_of(const std::vector<int>& ranks) {
  if (ranks.size() < 2) return {};
  const int stride = ranks[1] - ranks[0];
  for (size_t i = 2; i < ranks.size(); ++i)
    if (ranks[i] - ranks[i - 1] != stride) return {};
  return {ranks[0], stride};
}

}  // namespace

struct CommScope::Event {
  Event(at::StepCallbacks&& callbacks, Part part, const CommRecord& record,
        const Recorder::Members& members)
      : info(c10::DebugInfoKind::PARAM_COMMS_INFO, info_of(part, record, members)),
        function(std::move(callbacks)) {
    const c10::IValue inputs[] = {c10::IValue(record.sequence), c10::IValue(record.bytes)};
    function.before(at::kParamCommsCallName, c10::ArrayRef<const c10::IValue>(inputs));
  }

  static std::shared_ptr<torch::ParamCommsDebugInfo> info_of(Part part, const CommRecord& record,
                                                             const Recorder::Members& members) {
    const RankRange range = range_of(members.ranks);
    std::string name = part == Part::wait ? "wait for " + record.operation : record.operation;
    return std::make_shared<torch::ParamCommsDebugInfo>(
        std::make_tuple(record.group, record.group), members.place, std::move(name), record.bytes,
        record.bytes, at::kByte, std::vector<int64_t>(), std::vector<int64_t>(), range.start,
        range.stride, static_cast<int>(members.ranks.size()));
  }

  c10::DebugInfoGuard info;  // read when `function` ends
  at::RecordFunction function;
};

CommScope::CommScope(Part part, const Recorder& recorder, int64_t ticket) {
  auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
  if (!callbacks) return;
  const CommRecord record = recorder.find(ticket);
  event_ =
      std::make_unique<Event>(std::move(*callbacks), part, record, recorder.members(record.group));
}

CommScope::~CommScope() = default;

}  // namespace titan::dist
