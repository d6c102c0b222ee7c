// Computes metrics from answers, by the formulas of lm-evaluation-harness. No torch.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "requests.h"
#include "task.h"

namespace titan::evaluation {

/// Of one continuation after its context.
struct LogLikelihood {
  double sum = 0;         ///< nats
  bool is_greedy = true;  ///< whether each token is the most likely one
};

/// Of one task: by document, then by continuation.
using Answers = std::vector<std::vector<LogLikelihood>>;

/// `answers`: of the requests, in their order. Groups them by task and adds up the windows of one
/// text.
std::vector<Answers> answers_by_task(const std::vector<Task>& tasks,
                                     const std::vector<Request>& requests,
                                     const std::vector<LogLikelihood>& answers);

struct Metric {
  std::string name;  ///< "acc"
  double value = 0;
  std::optional<double> standard_error;  ///< absent for metrics without one, and for one document
  bool higher_is_better = true;
};

struct TaskScores {
  std::vector<Metric> metrics;
  std::vector<std::map<std::string, double>> documents;  ///< each document's value of each metric
};

/// multiple_choice: acc (largest sum; the first of equal ones), acc_norm (sum per character of the
/// choice), acc_bytes (per byte of UTF-8), each with standard error s / sqrt(n), s with n - 1.
/// loglikelihood: acc, and perplexity exp(-mean sum) with a standard error from
/// `bootstrap_iterations` samples (none below 2). loglikelihood_rolling: word_perplexity,
/// byte_perplexity, bits_per_byte over all documents.
TaskScores score(const Task& task, const Answers& answers, int64_t bootstrap_iterations = 0);

}  // namespace titan::evaluation
