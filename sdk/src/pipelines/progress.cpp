// See progress.h.
#include <titan/pipelines/progress.h>

#include <titan/error.h>

namespace titan {

using Kind = PipelineAction::Kind;

Progress::Progress(const PipelineShape& shape)
    : shape_(shape),
      done_(static_cast<size_t>(shape.num_stages) * static_cast<size_t>(shape.num_microbatches)) {}

Progress::Done& Progress::at(int stage, int microbatch) {
  return done_[static_cast<size_t>(stage) * static_cast<size_t>(shape_.num_microbatches) +
               static_cast<size_t>(microbatch)];
}

const Progress::Done& Progress::at(int stage, int microbatch) const {
  return const_cast<Progress*>(this)->at(stage, microbatch);
}

void Progress::finish(const PipelineAction& action) {
  Done& done = at(action.stage, action.microbatch);
  if (action.kind == Kind::forward) done.output = true;
  if (action.kind == Kind::backward || action.kind == Kind::input_grad) done.input_grad = true;
}

std::optional<PipelineAction> Progress::awaited(const PipelineAction& action) const {
  const auto [kind, stage, microbatch, overlaps_next] = action;
  switch (kind) {
    case Kind::forward:
      if (stage > 0 && !at(stage - 1, microbatch).output)
        return PipelineAction{Kind::forward, stage - 1, microbatch};
      return std::nullopt;
    case Kind::backward:
    case Kind::input_grad:
      if (!at(stage, microbatch).output) return PipelineAction{Kind::forward, stage, microbatch};
      if (stage + 1 < shape_.num_stages && !at(stage + 1, microbatch).input_grad)
        return PipelineAction{Kind::backward, stage + 1, microbatch};
      return std::nullopt;
    case Kind::weight_grad:
      if (!at(stage, microbatch).input_grad)
        return PipelineAction{Kind::input_grad, stage, microbatch};
      return std::nullopt;
    default:
      fail(ErrorKind::internal, "no action of a compute table: ", to_string(action));
  }
}

std::optional<PipelineAction> Progress::awaited(const std::vector<PipelineAction>& list,
                                                size_t at) const {
  for (size_t i = 0; i < num_together(list, at); ++i)
    if (auto missing = awaited(list[at + i])) return missing;
  return std::nullopt;
}

}  // namespace titan
