// Measures the loss on held-out data during training. Used by the trainer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/tokenizer.h>
#include <titan/transform.h>

#include "core/config/schema/job_sections.h"
#include "core/data/batches/loader.h"
#include "core/train/logging/logger_set.h"
#include "core/train/loss/loss_parts.h"

namespace titan::core {

/// Every validation reads the same sequences from the start of its data. Method of torchtitan
/// v0.2.2, but the loss is the mean over tokens, not over batches, so it does not depend on the
/// layout. The loss is that of training. Perplexity and bits per byte are computed from the
/// negative log likelihood, so with a loss of a plugin they exist if it reports that part. Thread:
/// trainer thread. References outlive the validator.
class Validator {
 public:
  Validator(std::vector<Source> sources, const Tokenizer& tokenizer, const LoaderOptions& options,
            const ValidationSection& section, StepExecutor& executor, const dist::Mesh& mesh,
            Device& device, LossParts& parts, const std::string& loss, LoggerSet& loggers);

  /// The metrics that it reports, for the log.
  std::string description() const;
  /// After the first step and every `freq` steps.
  bool is_due(int64_t step) const { return step == 1 || step % section_.freq == 0; }
  /// Reads the first batch without using it, so that data without a single batch is an error here.
  void check_data();
  /// Evaluates [validation] steps batches, or the whole set, and logs validation_metrics/*.
  /// Collective. Throws a data Error if no batch has a target.
  void run(int64_t step);

 private:
  struct Sums;
  Sums evaluate();
  std::optional<double> log_likelihood(const std::map<std::string, double>& parts,
                                       double loss) const;

  std::vector<Source> sources_;
  const Tokenizer& tokenizer_;
  LoaderOptions options_;
  ValidationSection section_;
  StepExecutor& executor_;
  const dist::Mesh& mesh_;
  Device& device_;
  LossParts& parts_;
  std::string loss_;  // of a plugin; empty: the cross entropy
  LoggerSet& loggers_;
};

}  // namespace titan::core
