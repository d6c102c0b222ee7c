#include <titan/runs/history_writer.h>

#include <fstream>
#include <iterator>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/runs/event.h>

namespace titan {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

}  // namespace

bool continues_history(const std::vector<RunEvent>& events, int64_t resumed_step,
                       const Value& config) {
  if (resumed_step > 0) return true;
  const Value* last = nullptr;
  for (const RunEvent& event : events)
    if (event.kind == RunEvent::Kind::start) last = event.details.find("config");
  const bool has_finished = !events.empty() && events.back().kind == RunEvent::Kind::end &&
                            events.back().outcome == RunEvent::Outcome::finished;
  return last && !has_finished && *last == config;
}

HistoryWriter::HistoryWriter(const std::filesystem::path& run_folder, const Value& start,
                             double begin) {
  try {
    open(run_folder / "history.jsonl", start);
  } catch (const Error& error) {
    log::warn("the history of this run is not written: " + error.message());
  }
  Value event = Value::map({{"event", "start"}, {"time", begin}});
  for (const auto& [name, value] : start.as_map()) event[name] = value;
  write(event);
}

void HistoryWriter::open(const std::filesystem::path& path, const Value& start) {
  const std::string text = text_of(path);
  const RunHistory before = parse_history(text);
  file_.emplace(path);
  if (!continues_history(before.events, start.at("resumed_step").as_integer(),
                         start.at("config"))) {
    file_->truncate(0);
    return;
  }
  for (const RunEvent& event : before.events) meter_.add(event);
  if (!text.empty() && text.back() != '\n')  // a kill truncated it
    file_->truncate(static_cast<int64_t>(text.rfind('\n') + 1));
}

void HistoryWriter::first_step(int64_t step) {
  write(Value::map({{"event", "first_step"}, {"time", wall_seconds()}, {"step", step}}));
}

void HistoryWriter::steps(int64_t from, int64_t to, const Value& seconds) {
  write(Value::map({{"event", "steps"},
                    {"time", wall_seconds()},
                    {"from", from},
                    {"to", to},
                    {"seconds", seconds}}));
}

void HistoryWriter::validation(int64_t step, double seconds) {
  write(Value::map(
      {{"event", "validation"}, {"time", wall_seconds()}, {"step", step}, {"seconds", seconds}}));
}

void HistoryWriter::checkpoint(int64_t step, double held_seconds) {
  write(Value::map(
      {{"event", "checkpoint"}, {"time", wall_seconds()}, {"step", step}, {"held", held_seconds}}));
}

void HistoryWriter::undone(int64_t step, int64_t attempt, const std::string& verdict,
                           const std::string& reason) {
  Value event = Value::map({{"event", "undone"},
                            {"time", wall_seconds()},
                            {"step", step},
                            {"attempt", attempt},
                            {"verdict", verdict}});
  if (!reason.empty()) event["reason"] = reason;
  write(event);
}

void HistoryWriter::end(int64_t step, const std::string& outcome, const std::string& error) {
  Value event = Value::map(
      {{"event", "end"}, {"time", wall_seconds()}, {"step", step}, {"outcome", outcome}});
  if (!error.empty()) event["error"] = error;
  write(event);
}

void HistoryWriter::write(const Value& event) {
  const std::string line = to_json(event);
  if (const std::optional<RunEvent> parsed = parse_event(line)) meter_.add(*parsed);
  if (!file_) return;
  try {
    file_->append(line + "\n");
    file_->flush();
  } catch (const Error& error) {
    file_.reset();
    log::warn("the history of this run ends here, training continues: " + error.message());
  }
}

}  // namespace titan
