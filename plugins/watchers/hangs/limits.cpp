#include "limits.h"

#include <algorithm>
#include <cmath>

#include <titan/error.h>

namespace titan::hangs {
namespace {

void learn(const Seconds& seen, Seconds& learned) {
  for (size_t i = 0; i < kNumSections; ++i)
    if (seen[i] > 0) learned[i] = learned[i] > 0 ? (learned[i] + seen[i]) / 2 : seen[i];
}

Value as_value(const Seconds& seconds) {
  Value value = Value::map();
  for (size_t i = 0; i < kNumSections; ++i)
    if (seconds[i] > 0) value[name_of_section(i)] = seconds[i];
  return value;
}

Seconds as_seconds(const Value& value) {
  Seconds seconds{};
  for (size_t i = 0; i < kNumSections; ++i) {
    const Value* stored = value.find(name_of_section(i));
    if (!stored) continue;
    seconds[i] = stored->as_number();
    TITAN_CHECK(std::isfinite(seconds[i]) && seconds[i] >= 0, data,
                "the state of watcher 'hangs' has ", seconds[i], " s as longest time of section '",
                name_of_section(i), "', which must be finite and not negative");
  }
  return seconds;
}

}  // namespace

std::string_view name_of_section(size_t section) {
  if (section == kStep) return "step";
  const auto phase = static_cast<StepPhase>(section);
  return phase == StepPhase::other ? "outside" : name_of(phase);
}

void Longest::add(const Seconds& seconds, bool is_first_step) {
  Seconds& longest = is_first_step ? first : later;
  for (size_t i = 0; i < kNumSections; ++i) longest[i] = std::max(longest[i], seconds[i]);
}

void Limits::update(const Longest& seen) {
  learn(seen.first, learned_.first);
  learn(seen.later, learned_.later);
}

std::optional<Limit> Limits::limit(size_t section, bool is_first_step) const {
  const double first = learned_.first[section], later = learned_.later[section];
  const double longest = is_first_step || later == 0 ? std::max(first, later) : later;
  if (longest == 0) return {};
  return Limit{std::max(options_.floor_seconds, options_.factor * longest), longest};
}

Value Limits::state() const {
  return Value::map({{"first", as_value(learned_.first)}, {"later", as_value(learned_.later)}});
}

void Limits::restore(const Value& state) {
  learned_ = {.first = as_seconds(state.at("first")), .later = as_seconds(state.at("later"))};
}

}  // namespace titan::hangs
