// See mlflow_client.h.
#include "mlflow_client.h"

#include <cctype>

#include <titan/error.h>
#include <titan/shown_text.h>

namespace titan::loggers {
namespace {

std::string percent_encoded(const std::string& text) {
  constexpr std::string_view kPlain = "-._~";
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (std::isalnum(byte) || kPlain.find(c) != kPlain.npos))
      encoded += c;
    else
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return encoded;
}

bool may_pass(int status) {
  return status == 0 || status == 408 || status == 429 || status >= 500;
}

/// MLflow's error message, or the beginning of another body.
std::string words_of(const std::string& body) {
  constexpr size_t kMost = 300;
  try {
    const Value value = parse_json(body);
    if (const Value* message = value.find("message"); message && message->is_string())
      return printable(message->as_string(), kMost);
  } catch (const Error&) {
  }
  return printable(body, kMost);
}

Value tag_list(const MlflowParams& tags) {
  Value::List list;
  for (const auto& [key, value] : tags)
    list.push_back(Value::map({{"key", key}, {"value", value}}));
  return list;
}

const Value& member(const Value& answer, const char* outer, const char* inner) {
  const Value* found = answer.find(outer);
  if (found) found = found->find(inner);
  if (!found)
    throw MlflowRefusal(200, std::string("the answer has no ") + outer + "." + inner +
                                 ": this is not an MLflow server");
  return *found;
}

}  // namespace

Value MlflowClient::call(const std::string& what, Value request) {
  if (!settings_.token.empty())
    request["headers"] = Value::list({"Authorization: Bearer " + settings_.token});
  else if (!settings_.user.empty()) {
    request["user"] = settings_.user;
    request["password"] = settings_.password;
  }
  if (!settings_.ca_file.empty()) request["ca_file"] = settings_.ca_file;
  const HttpAnswer answer = post_.send(std::move(request), settings_.request_timeout_s);
  const std::string where = settings_.server + ", " + what + ": ";
  if (!answer.problem.empty()) throw MlflowUnreachable(where + printable(answer.problem));
  if (answer.status == 200) {
    try {
      return parse_json(answer.body);
    } catch (const Error&) {
      throw MlflowRefusal(200, where + "the answer is not JSON: this is not an MLflow server");
    }
  }
  const std::string text =
      where + "status " + std::to_string(answer.status) + ": " + words_of(answer.body);
  if (may_pass(answer.status)) throw MlflowUnreachable(text);
  throw MlflowRefusal(answer.status, text);
}

Value MlflowClient::get(const std::string& what, const std::string& name,
                        const std::string& value) {
  return call(what, Value::map({{"url", settings_.server + "/api/2.0/mlflow/" + what + "?" + name +
                                            "=" + percent_encoded(value)}}));
}

Value MlflowClient::post(const std::string& what, Value body) {
  return call(what, Value::map({{"url", settings_.server + "/api/2.0/mlflow/" + what},
                                {"body", to_json(body)}}));
}

std::string MlflowClient::experiment_of(const std::string& name) {
  constexpr int kNotFound = 404, kExists = 400;
  const auto find = [&] {
    return member(get("experiments/get-by-name", "experiment_name", name), "experiment",
                  "experiment_id")
        .as_string();
  };
  try {
    return find();
  } catch (const MlflowRefusal& refusal) {
    if (refusal.status() != kNotFound) throw;
  }
  try {
    return post("experiments/create", Value::map({{"name", name}})).at("experiment_id").as_string();
  } catch (const MlflowRefusal& refusal) {
    if (refusal.status() != kExists) throw;
  }
  return find();  // another process created it meanwhile
}

std::string MlflowClient::create_run(const std::string& experiment_id, const std::string& name,
                                     int64_t start_time_ms, const MlflowParams& tags) {
  Value body = Value::map(
      {{"experiment_id", experiment_id}, {"start_time", start_time_ms}, {"tags", tag_list(tags)}});
  if (!name.empty()) body["run_name"] = name;
  const Value answer = post("runs/create", std::move(body));
  return member(answer.at("run"), "info", "run_id").as_string();
}

std::string MlflowClient::find_run(const std::string& experiment_id, const std::string& tag,
                                   const std::string& value) {
  const Value answer =
      post("runs/search", Value::map({{"experiment_ids", Value::list({experiment_id})},
                                      {"filter", "tags.`" + tag + "` = '" + value + "'"},
                                      {"max_results", 1}}));
  const Value* runs = answer.find("runs");
  if (!runs || runs->as_list().empty()) return {};
  return member(runs->as_list().front(), "info", "run_id").as_string();
}

MlflowRunState MlflowClient::run_state(const std::string& run_id) {
  const Value answer = get("runs/get", "run_id", run_id);
  const Value& data = member(answer, "run", "data");
  MlflowRunState state;
  if (const Value* metrics = data.find("metrics"))
    for (const Value& metric : metrics->as_list()) {
      const Value* step = metric.find("step");  // JSON of protobuf may write it as text
      state.last_steps[metric.at("key").as_string()] = !step ? 0
                                                       : step->is_integer()
                                                           ? step->as_integer()
                                                           : std::stoll(step->as_string());
    }
  if (const Value* params = data.find("params"))
    for (const Value& param : params->as_list()) state.params.insert(param.at("key").as_string());
  return state;
}

void MlflowClient::set_status(const std::string& run_id, const std::string& status,
                              int64_t end_time_ms) {
  Value body = Value::map({{"run_id", run_id}, {"status", status}});
  if (end_time_ms > 0) body["end_time"] = end_time_ms;
  post("runs/update", std::move(body));
}

void MlflowClient::log_points(const std::string& run_id, std::span<const MlflowPoint> points) {
  Value::List metrics;
  for (const MlflowPoint& point : points)
    metrics.push_back(Value::map({{"key", point.key},
                                  {"value", mlflow_number(point.value)},
                                  {"timestamp", point.time_ms},
                                  {"step", point.step}}));
  post("runs/log-batch", Value::map({{"run_id", run_id}, {"metrics", std::move(metrics)}}));
}

void MlflowClient::log_params(const std::string& run_id,
                              std::span<const MlflowParams::value_type> params) {
  post("runs/log-batch",
       Value::map({{"run_id", run_id}, {"params", tag_list({params.begin(), params.end()})}}));
}

}  // namespace titan::loggers
