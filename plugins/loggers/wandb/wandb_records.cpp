// See wandb_records.h. Field numbers are those of wandb_internal.proto.
#include "wandb_records.h"

#include <cmath>

#include "../common/protobuf.h"

namespace titan::loggers {
namespace {

constexpr int kValueJson = 16;

Message item(const WandbItem& item, int key_field) {
  return Message().bytes(key_field, item.first).bytes(kValueJson, item.second);
}

std::string record(int64_t number, int field, const Message& content) {
  return Message().integer(1, number).message(field, content).str();
}

}  // namespace

std::string wandb_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return to_json(Value(value));
}

std::string wandb_run_record(int64_t number, const WandbSettings& settings, const Value& config,
                             const std::string& host, double start_time, bool resumes) {
  constexpr int kKey = 1;
  Message run;
  const auto text = [&](int field, const std::string& value) {
    if (!value.empty()) run.bytes(field, value);
  };
  text(1, settings.run_id);
  text(2, settings.team);
  text(3, settings.project);
  Message updates;
  if (config.is_map())
    for (const auto& [key, value] : config.as_map())
      updates.message(1, item({key, to_json(value)}, kKey));
  run.message(4, updates);
  text(6, settings.group);
  text(7, settings.job_type);
  text(8, settings.name);
  text(9, settings.notes);
  for (const std::string& tag : settings.tags) run.bytes(10, tag);
  text(13, host);
  const double seconds = std::floor(start_time);
  run.message(17, Message()
                      .integer(1, static_cast<int64_t>(seconds))
                      .integer(2, static_cast<int64_t>((start_time - seconds) * 1e9)));
  if (resumes) run.integer(24, 1);
  return record(number, 17, run);
}

std::string wandb_history_record(int64_t number, int64_t step,
                                 const std::vector<WandbItem>& items) {
  constexpr int kNestedKey = 2;  // used once: the whole key, including dots
  Message history;
  for (const WandbItem& value : items) history.message(1, item(value, kNestedKey));
  history.message(2, Message().integer(1, step));
  return record(number, 2, history);
}

std::string wandb_summary_record(int64_t number, const std::vector<WandbItem>& items) {
  constexpr int kNestedKey = 2;
  Message summary;
  for (const WandbItem& value : items) summary.message(1, item(value, kNestedKey));
  return record(number, 3, summary);
}

std::string wandb_exit_record(int64_t number, int exit_code, double runtime) {
  return record(number, 18,
                Message().integer(1, exit_code).integer(2, static_cast<int64_t>(runtime)));
}

}  // namespace titan::loggers
