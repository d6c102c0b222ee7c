// Scores the model that is trained on tasks, beside training: [validation] tasks.
#pragma once

#include <cstdint>
#include <vector>

#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/tokenizer.h>
#include <titan/transform.h>

#include "core/config/job_config.h"
#include "core/evaluate/scoring/scorer.h"
#include "core/train/logger_set.h"

namespace titan::core {

/// Tasks and what is asked, before there is a model.
struct OpenedTasks {
  std::vector<Task> tasks;
  std::vector<Request> requests;
};

/// What [validation] tasks names, in windows of its seq_len. Throws a ConfigError that holds all
/// that is wrong with the files.
OpenedTasks open_tasks(const JobConfig& config, const Tokenizer& tokenizer);

/// Method: titan evaluate's. Thread: trainer thread. References outlive the validator.
class TaskValidator {
 public:
  /// Throws a config Error where attention is computed by somebody who knows no cache.
  TaskValidator(OpenedTasks opened, const ValidationSection& section, ModelPart& part,
                int64_t vocab_size, StepExecutor& executor, const dist::Mesh& mesh, Device& device,
                LoggerSet& loggers);

  bool is_due(int64_t step) const { return step % freq_ == 0; }
  /// Logs validation_metrics/<task>/<metric>, "<metric>_stderr" beside those that have one, and a
  /// line on rank 0. Every rank calls it.
  void run(int64_t step);

 private:
  OpenedTasks opened_;
  int64_t freq_;
  Scorer scorer_;
  LoggerSet& loggers_;
  bool is_rank_zero_;
};

}  // namespace titan::core
