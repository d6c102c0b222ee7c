// The watcher `task_scores`: scores the model on tasks during training, like titan evaluate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/watcher.h>

#include "scorer.h"

namespace titan::evaluation {

/// Values of keys in [validation] and [model].
struct TaskScoresOptions {
  std::vector<std::string> tasks;     ///< as for titan evaluate --tasks
  std::optional<int64_t> tasks_freq;  ///< steps between scores; unset: `freq`
  int64_t freq = 10;
  int64_t seq_len = 2048;        ///< context length in tokens
  int64_t local_batch_size = 8;  ///< a forward has as many tokens as a validation batch
  std::string hf_assets_path;
};

class TaskScoring final : public Watcher {
 public:
  /// Throws a ConfigError that lists all problems of the task files, and a config Error without a
  /// tokenizer. A simulated run without a tokenizer reads no files.
  TaskScoring(const TaskScoresOptions& options, WatcherContext context);

  /// Throws a config Error where a kernel without a KV cache computes the attention.
  void attach(ModelPart& part) override;
  bool looks_into_layers() const override { return false; }
  bool reads_numbers() const override { return false; }
  void start(const WatcherStart& start) override;
  bool validates(int64_t step) const override;
  /// Logs validation_metrics/<task>/<metric>, "<metric>_stderr" for metrics with a standard error,
  /// and a line on rank 0.
  void validate(int64_t step) override;

 private:
  TaskScoresOptions options_;
  WatcherContext context_;
  std::vector<Task> tasks_;
  std::vector<Request> requests_;
  std::optional<Scorer> scorer_;
};

}  // namespace titan::evaluation
