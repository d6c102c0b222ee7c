#include "find_hang.h"

#include <algorithm>

namespace titan::hangs {
namespace {

/// A step without a save spends less time in its scope.
constexpr double kLeastSave = 1e-3;

std::optional<Finding> judge_wait(const Situation& at, const Limits& limits) {
  const auto had = [&](StepPhase phase, double least) {
    const size_t section = section_of(phase);
    return at.now[section] > least || at.before[section] > least;
  };
  std::vector<size_t> sections = {kStep};
  if (had(StepPhase::validation, 0)) sections.push_back(section_of(StepPhase::validation));
  if (had(StepPhase::checkpoint, kLeastSave)) sections.push_back(section_of(StepPhase::checkpoint));
  Finding finding{.waits = true, .seconds = *at.waits};
  for (const size_t section : sections) {
    const std::optional<Limit> limit = limits.limit(section, at.is_first_step);
    if (!limit) return {};
    finding.limit.seconds += limit->seconds;
    finding.parts.emplace_back(section, *limit);
  }
  const size_t communication = section_of(StepPhase::communication);
  if (const auto own = limits.limit(communication, at.is_first_step);
      own && own->seconds > finding.limit.seconds) {
    finding.limit.seconds = own->seconds;
    finding.parts = {{communication, *own}};
  }
  finding.limit.seconds += at.patience;
  return finding.seconds > finding.limit.seconds ? std::optional(finding) : std::nullopt;
}

}  // namespace

std::optional<Finding> find_hang(const Situation& at, const Limits& limits) {
  if (at.waits) return judge_wait(at, limits);
  const auto is_above = [&](size_t section, const std::optional<Limit>& limit) {
    return limit && at.now[section] > limit->seconds;
  };
  const size_t section = section_of(at.phase);
  const std::optional<Limit> own = limits.limit(section, at.is_first_step);
  const std::optional<Limit> step = limits.limit(kStep, at.is_first_step);
  if (is_above(section, own))
    return Finding{.section = section, .seconds = at.now[section], .limit = *own};
  if (!is_above(kStep, step)) return {};
  // the section says more, and will soon be above its limit too
  if (own && own->seconds <= step->seconds && at.now[section] > at.now[kStep] / 2) return {};
  return Finding{.section = kStep, .seconds = at.now[kStep], .limit = *step};
}

}  // namespace titan::hangs
