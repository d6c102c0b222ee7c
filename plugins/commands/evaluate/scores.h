// What answers are worth, by the formulas of lm-evaluation-harness. No torch.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "requests.h"
#include "task.h"

namespace titan::evaluation {

/// Of the tokens of one continuation behind its context.
struct LogLikelihood {
  double sum = 0;         ///< nats
  bool is_greedy = true;  ///< whether each token is the likeliest
};

/// Of one task; its documents, then their continuations.
using Answers = std::vector<std::vector<LogLikelihood>>;

/// `answers` of the requests, in their order, by task: windows of one text are added up.
std::vector<Answers> answers_by_task(const std::vector<Task>& tasks,
                                     const std::vector<Request>& requests,
                                     const std::vector<LogLikelihood>& answers);

struct Metric {
  std::string name;  ///< "acc"
  double value = 0;
  std::optional<double> standard_error;  ///< absent where there is none, and for one document
  bool higher_is_better = true;
};

struct TaskScores {
  std::vector<Metric> metrics;
  std::vector<std::map<std::string, double>> documents;  ///< what each counts for a metric
};

/// multiple_choice: acc (largest sum; the first of equal ones), acc_norm (sum per character of the
/// choice), acc_bytes (per byte of UTF-8), each with s / sqrt(n), s with n - 1. loglikelihood:
/// perplexity exp(-mean sum), whose standard error is that of `bootstrap_iterations` samples (below
/// 2: there is none), and acc. loglikelihood_rolling: word_perplexity, byte_perplexity,
/// bits_per_byte over all documents.
TaskScores score(const Task& task, const Answers& answers, int64_t bootstrap_iterations = 0);

}  // namespace titan::evaluation
