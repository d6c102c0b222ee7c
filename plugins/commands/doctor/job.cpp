// The job of a recipe: a dry run finds its mistakes, an estimate what it takes.
#include <algorithm>
#include <sstream>

#include <titan/error.h>
#include <titan/program/quantity_text.h>

#include "../common/child_output.h"
#include "../common/run_config.h"
#include "checks.h"

namespace titan::commands {
namespace {

constexpr double kLongestDryRun = 600;  // seconds

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += " " + word;
  return text;
}

template <class T>
T value_or(const std::map<std::string, std::string>& config, const std::string& key, T otherwise) {
  const auto found = config.find(key);
  if (found == config.end()) return otherwise;
  const Value value = parse_json(found->second);
  if constexpr (std::is_same_v<T, bool>)
    return value.is_boolean() ? value.as_boolean() : otherwise;
  else if constexpr (std::is_same_v<T, int64_t>)
    return value.is_integer() ? value.as_integer() : otherwise;
  else
    return value.is_string() ? value.as_string() : otherwise;
}

/// Weights and optimizer states of all ranks, for each kept checkpoint and the one that is written.
int64_t bytes_of_checkpoints(const Value& estimate,
                             const std::map<std::string, std::string>& config) {
  int64_t bytes = 0;
  for (const Value& rank : estimate.at("ranks").as_list())
    bytes += rank.at("holds").at("parameters").as_integer() +
             rank.at("holds").at("optimizer_states").as_integer();
  const int64_t ranks = std::max<int64_t>(1, estimate.at("world_size").as_integer());
  bytes *=
      std::max<int64_t>(1, ranks / static_cast<int64_t>(estimate.at("ranks").as_list().size()));
  const int64_t kept = value_or<int64_t>(config, "checkpoint.keep_latest_k", 10);
  return bytes * (kept > 0 ? kept + 1 : 2);
}

}  // namespace

JobNeeds check_job(const std::filesystem::path& program, const std::vector<std::string>& job,
                   Findings& findings) {
  JobNeeds needs;
  std::vector<std::string> words = {"train", "--dry-run"};
  words.insert(words.end(), job.begin(), job.end());
  try {
    const ChildOutput dry = output_of(program, words, kLongestDryRun);
    if (!dry.succeeded()) {
      std::istringstream lines(dry.errors);
      std::string line, said;
      while (std::getline(lines, line))
        if (const size_t at = line.find("error: "); at != std::string::npos)
          said += (said.empty() ? "" : "; ") + line;
      findings.add({"job", Health::problem, said.empty() ? dry.errors : said,
                    "a job that can start here", "the start of this job", "titan" + joined(words)});
      return needs;
    }
    findings.ok("job", "the dry run finds no mistake");
    const auto config = parse_run_config("the resolved configuration", dry.out);
    needs.needs_gpu = value_or<std::string>(config, "device.name", "") == "cuda";
    words = {"estimate", "--json"};
    words.insert(words.end(), job.begin(), job.end());
    const ChildOutput estimated = output_of(program, words, kLongestDryRun);
    if (!estimated.succeeded()) return needs;  // the dry run tells what matters
    const Value estimate = parse_json(estimated.out);
    int64_t peak = 0;
    for (const Value& rank : estimate.at("ranks").as_list())
      peak = std::max(peak, rank.at("peak_bytes").as_integer());
    if (!needs.needs_gpu)
      needs.bytes_of_ranks = peak * std::max<int64_t>(1, estimate.at("world_size").as_integer());
    findings.ok("job_memory",
                "a rank takes " + bytes_text(static_cast<double>(peak)) + " at its peak");
    if (value_or<bool>(config, "checkpoint.enable", false))
      needs.bytes_of_checkpoints = bytes_of_checkpoints(estimate, config);
  } catch (const Error& e) {
    findings.add({"job", Health::warning, e.what(), "a dry run and an estimate",
                  "nothing by itself", "titan" + joined(words)});
  }
  return needs;
}

}  // namespace titan::commands
