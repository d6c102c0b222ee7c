#include "run_record.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <utility>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/runs/event.h>
#include <titan/value.h>

#include "../common/run_config.h"

namespace titan::commands {
namespace {

using std::filesystem::path;

/// Calls `take` with each complete line; errors get file and line.
void read_lines(const path& file, const std::function<void(const Value&)>& take) {
  const std::string text = read_text(file);
  size_t begin = 0;
  for (int64_t number = 1; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) return;  // incomplete: killed, or still writing
    try {
      take(parse_json(std::string_view(text).substr(begin, end - begin)));
    } catch (const Error& error) {
      fail(ErrorKind::data, "cannot read ", file.string(), ":", number, ": ", error.message());
    }
    begin = end + 1;
  }
}

double number_of(const Value& value) {
  if (!value.is_string()) return value.as_number();
  const std::string& text = value.as_string();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  TITAN_CHECK(text == "nan", data, "'", text, "' is not a number");
  return std::nan("");
}

std::vector<int64_t> integers_of(const Value& list) {
  std::vector<int64_t> numbers;
  for (const Value& number : list.as_list()) numbers.push_back(number.as_integer());
  return numbers;
}

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  TITAN_CHECK(error == std::errc() && end == text.data() + text.size(), data, "'", text,
              "' is not a hash");
  return hash;
}

/// Whether a tag is a result that two equal runs share. Times, memory and speeds always differ; the
/// largest loss of any rank differs between layouts.
bool is_result(const std::string& tag) {
  if (tag == "loss_metrics/global_max_loss") return false;
  return tag == "lr" || tag == "loss_scale" || tag.starts_with("grad_norm") ||
         tag.starts_with("loss_metrics/") || tag.starts_with("validation_metrics/loss");
}

void read_start(const path& folder, RunRecord& run) {
  for (const RunEvent& event : read_history(folder).events) {
    if (event.kind != RunEvent::Kind::start) continue;
    run.start.clear();
    for (const auto& [name, member] : {std::pair{"ranks", "world_size"},
                                       {"tokens a step", "tokens_per_step"},
                                       {"device", "device"},
                                       {"build", "titan"}})
      if (const Value* value = event.details.find(member)) run.start[name] = to_json(*value);
  }
}

void read_numbers(const path& file, RunRecord& run) {
  read_lines(file, [&](const Value& line) {
    auto& step = run.numbers[line.at("step").as_integer()];
    for (const auto& [tag, value] : line.as_map())
      if (is_result(tag)) step[tag] = number_of(value);
  });
}

void read_fingerprints(const path& file, RunRecord& run) {
  read_lines(file, [&](const Value& line) {
    if (const Value* name = line.find("parameter")) {
      const auto is_same = [&](const auto& weight) { return weight.first == name->as_string(); };
      if (std::none_of(run.weights.begin(), run.weights.end(), is_same))  // of the first start
        run.weights.emplace_back(name->as_string(), line.at("xxh3").as_string());
    } else {
      run.tokens[line.at("step").as_integer()] = line.at("tokens").as_string();
    }
  });
}

TracedTensor traced(const Value& line, int rank) {
  const std::vector<int64_t> key = integers_of(line.at("key"));
  TITAN_CHECK(key.size() == 4, data, "'key' has ", key.size(), " numbers instead of 4");
  TracedTensor tensor{.rank = rank,
                      .kind = line.at("tensor").as_string(),
                      .name = line.at("name").as_string(),
                      .key = {key[0], key[1], key[2], key[3]},
                      .dtype = line.at("dtype").as_string(),
                      .shape = integers_of(line.at("shape")),
                      .count = line.at("count").as_integer(),
                      .mean = line.at("mean").as_number(),
                      .rms = line.at("rms").as_number(),
                      .min = line.at("min").as_number(),
                      .max = line.at("max").as_number(),
                      .num_nan = line.at("nan").as_integer(),
                      .num_inf = line.at("inf").as_integer(),
                      .hash = hash_of(line.at("hash").as_string())};
  if (const Value* offsets = line.find("offsets")) {
    tensor.offsets = integers_of(*offsets);
    tensor.of = integers_of(line.at("of"));
  }
  if (const Value* row = line.find("row")) {
    tensor.first_row = row->as_integer();
    tensor.num_rows = line.at("rows").as_integer();
  }
  return tensor;
}

void read_trace(const path& file, RunRecord& run) {
  int rank = -1;
  std::pair<int64_t, int64_t> before;  // step and attempt
  read_lines(file, [&](const Value& line) {
    if (line.find("trace")) {
      rank = static_cast<int>(line.at("rank").as_integer());
      run.trace[rank].axes = to_json(line.at("axes"));
      before = {};
      return;
    }
    TITAN_CHECK(rank >= 0, data, "no earlier line gives the rank of the trace");
    TracedTensor tensor = traced(line, rank);
    const int64_t step = line.at("step").as_integer();
    auto& tensors = run.trace[rank].steps[step];
    const std::pair attempt{step, line.at("attempt").as_integer()};
    if (std::exchange(before, attempt) != attempt) tensors.clear();  // a repeated step
    const TraceName name{std::get<1>(tensor.key), tensor.kind, tensor.name};
    tensors[name].push_back(std::move(tensor));
  });
}

}  // namespace

RunRecord read_run(const std::string& folder) {
  RunRecord run{.folder = folder};
  const path root = folder;
  TITAN_CHECK(std::filesystem::is_directory(root), config, "there is no folder '", folder,
              "'; name the job.dump_folder of a run");
  TITAN_CHECK(std::filesystem::exists(root / "config.toml"), config, "'", folder,
              "' is not the folder of a run: it holds no config.toml; name the job.dump_folder of "
              "one");
  run.config = read_run_config(root / "config.toml");
  read_start(root, run);
  for (const char* name : {"metrics.jsonl", "metrics_rank_0.jsonl"})
    if (std::filesystem::exists(root / name)) {
      read_numbers(root / name, run);
      break;
    }
  if (std::filesystem::exists(root / "fingerprints.jsonl"))
    read_fingerprints(root / "fingerprints.jsonl", run);
  if (std::filesystem::is_directory(root / "tensor_trace"))
    for (const auto& entry : std::filesystem::directory_iterator(root / "tensor_trace"))
      if (entry.path().extension() == ".jsonl") read_trace(entry.path(), run);
  return run;
}

}  // namespace titan::commands
