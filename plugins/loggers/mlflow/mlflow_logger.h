// Logger `mlflow`: the run on an MLflow tracking server.
#pragma once

#include <memory>

#include <titan/logger.h>

#include "mlflow_options.h"
#include "mlflow_sender.h"

namespace titan::loggers {

/// Sends scalars as metrics, under names that MLflow takes, and the resolved configuration as
/// parameters ("training.steps"). A run of every rank's own is named after its rank. A resumed run
/// goes on in the run of before, whose id is kept in `<dump_folder>/mlflow_run.json`; steps that
/// the server has already and that are done again keep their first values.
///
/// What the server does never holds training: requests are made by a thread, through titan-post.
class MlflowLogger final : public Logger {
 public:
  MlflowLogger(const MlflowOptions& options, LoggerContext) : options_(options) {}

  void start(const RunInfo& run) override;
  void log(int64_t step, std::span<const Scalar> scalars) override;
  double finish_seconds() const override { return options_.finish_timeout.seconds + 2; }
  void finish(RunOutcome outcome) noexcept override;

 private:
  MlflowOptions options_;
  std::unique_ptr<MlflowSender> sender_;
};

}  // namespace titan::loggers
