// `titan evaluate`: scores a checkpoint or a Hugging Face folder on tasks, under any layout.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/command.h>
#include <titan/engine.h>

#include "scores.h"

namespace titan::evaluation {

struct EvaluateOptions : RankFlags {
  std::filesystem::path checkpoint, output;
  std::vector<std::string> tasks;  ///< files and folders
  bool json = false, log_samples = false;
  std::optional<int64_t> limit;  ///< documents per task
  int64_t batch_tokens = 4096;
  std::optional<int64_t> max_length;   ///< context length for the requests, in tokens
  std::string add_bos_token = "auto";  ///< or "true", "false"
  int64_t bootstrap_iters = 100000;
};

class Evaluate final : public Command {
 public:
  static constexpr CommandWords kWords{.most = SIZE_MAX, .takes_job = true};

  /// Throws a config Error that lists all problems of the flags.
  Evaluate(const EvaluateOptions& options, CommandContext context);
  /// Throws a ConfigError that lists all problems of the tasks, before a model is opened.
  int run() override;

 private:
  void evaluate_all(Engine& engine) const;
  Value run_facts(const TokenRules& rules, double date, double seconds) const;
  void show(const std::vector<Answers>& answers, const std::vector<TaskScores>& scores,
            const Value& facts) const;

  EvaluateOptions options_;
  CommandContext context_;
  std::vector<Task> tasks_;
};

}  // namespace titan::evaluation
