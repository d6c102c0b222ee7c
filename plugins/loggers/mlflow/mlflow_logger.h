// Logger `mlflow`: sends the run to an MLflow tracking server.
#pragma once

#include <memory>

#include <titan/logger.h>

#include "mlflow_options.h"
#include "mlflow_sender.h"

namespace titan::loggers {

/// Sends scalars as metrics, under names that MLflow accepts, and the resolved configuration as
/// parameters ("training.steps"). When every rank has its own run, its name contains the rank. A
/// resumed run continues the earlier MLflow run, whose id is in `<dump_folder>/mlflow_run.json`.
/// Repeated steps that the server already has keep their first values.
///
/// The server never blocks training: a thread makes the requests, through titan-post.
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
