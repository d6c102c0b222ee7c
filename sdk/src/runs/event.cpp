#include <titan/runs/event.h>

#include <cmath>

#include <titan/error.h>
#include <titan/files/file.h>

namespace titan {
namespace {

/// A member that is a finite number.
double number(const Value& line, std::string_view name) {
  const Value& value = line.at(name);
  TITAN_CHECK(value.is_number() || value.is_integer(), data, "member '", name,
              "' is not a number, but ", to_string(value.type()));
  return value.as_number();
}

int64_t integer(const Value& line, std::string_view name) {
  const Value& value = line.at(name);
  TITAN_CHECK(value.is_integer(), data, "member '", name, "' is not an integer, but ",
              to_string(value.type()));
  return value.as_integer();
}

std::string text(const Value& line, std::string_view name) {
  const Value* value = line.find(name);
  return value && value->is_string() ? value->as_string() : std::string();
}

/// A finite, non-negative number of seconds.
double duration(const Value& line, std::string_view name) {
  const double seconds = number(line, name);
  TITAN_CHECK(std::isfinite(seconds) && seconds >= 0, data, "member '", name, "' is ", seconds,
              ", which is not a duration");
  return seconds;
}

RunEvent::Outcome outcome_of(const std::string& name) {
  for (const auto outcome :
       {RunEvent::Outcome::finished, RunEvent::Outcome::stopped, RunEvent::Outcome::failed})
    if (name == to_string(outcome)) return outcome;
  fail(ErrorKind::data, "a session ends finished, stopped or failed, not '", name, "'");
}

void take_steps(const Value& line, RunEvent& event) {
  event.from = integer(line, "from");
  event.step = event.to = integer(line, "to");
  TITAN_CHECK(event.from <= event.to, data, "steps ", event.from, " to ", event.to,
              " are not a range");
  const Value& phases = line.at("seconds");
  TITAN_CHECK(phases.is_map(), data, "member 'seconds' is not a map");
  for (const auto& [phase, value] : phases.as_map())
    event.phases.emplace_back(phase, duration(phases, phase));
}

}  // namespace

double RunEvent::phase_total() const {
  double sum = 0;
  for (const auto& [name, took] : phases) sum += took;
  return sum;
}

double RunEvent::phase(std::string_view name) const {
  for (const auto& [own, took] : phases)
    if (own == name) return took;
  return 0;
}

const char* to_string(RunEvent::Outcome outcome) {
  constexpr const char* kNames[] = {"finished", "stopped", "failed"};
  return kNames[static_cast<size_t>(outcome)];
}

std::optional<RunEvent> parse_event(std::string_view json) {
  Value line = parse_json(json);
  TITAN_CHECK(line.is_map(), data, "the line is not an object");
  const std::string kind = text(line, "event");
  RunEvent event;
  event.time = number(line, "time");
  if (kind == "start") {
    event.kind = RunEvent::Kind::start;
    event.step = integer(line, "resumed_step");
    event.details = std::move(line);
  } else if (kind == "first_step") {
    event.kind = RunEvent::Kind::first_step;
    event.step = integer(line, "step");
  } else if (kind == "steps") {
    event.kind = RunEvent::Kind::steps;
    take_steps(line, event);
  } else if (kind == "validation" || kind == "checkpoint") {
    const bool is_validation = kind == "validation";
    event.kind = is_validation ? RunEvent::Kind::validation : RunEvent::Kind::checkpoint;
    event.step = integer(line, "step");
    event.seconds = duration(line, is_validation ? "seconds" : "held");
  } else if (kind == "undone") {
    event.kind = RunEvent::Kind::undone;
    event.step = integer(line, "step");
    event.attempt = integer(line, "attempt");
    event.is_skipped = text(line, "verdict") == "skip";
    event.reason = text(line, "reason");
  } else if (kind == "end") {
    event.kind = RunEvent::Kind::end;
    event.step = integer(line, "step");
    event.outcome = outcome_of(text(line, "outcome"));
    event.error = text(line, "error");
  } else {
    TITAN_CHECK(!kind.empty(), data, "member 'event' is missing");
    return std::nullopt;
  }
  return event;
}

RunHistory parse_history(std::string_view text) {
  RunHistory history;
  for (size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    try {
      if (std::optional<RunEvent> event = parse_event(line))
        history.events.push_back(*std::move(event));
    } catch (const Error&) {
      ++history.num_unreadable;
    }
  }
  return history;
}

RunHistory read_history(const std::filesystem::path& run_folder) {
  const std::filesystem::path path = run_folder / "history.jsonl";
  if (!std::filesystem::exists(path)) return {};
  return parse_history(read_text(path));
}

}  // namespace titan
