#include "scores.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <titan/error.h>

#include "bootstrap.h"
#include "text_counts.h"

namespace titan::evaluation {
namespace {

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Standard error of the mean of `values`.
std::optional<double> standard_error(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  if (values.size() < 2) return std::nullopt;
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return std::sqrt(squares / (n - 1)) / std::sqrt(n);
}

/// The index of the first of the largest.
template <class Length>
size_t best(const std::vector<LogLikelihood>& answers, const std::vector<std::string>& choices,
            const Length& length) {
  size_t found = 0;
  const auto per_unit = [&](size_t i) {
    return answers[i].sum / static_cast<double>(length(choices[i]));
  };
  for (size_t i = 1; i < answers.size(); ++i)
    if (per_unit(i) > per_unit(found)) found = i;
  return found;
}

Metric mean_of(const TaskScores& scores, const std::string& name) {
  std::vector<double> values;
  for (const auto& document : scores.documents) values.push_back(document.at(name));
  return {.name = name, .value = mean(values), .standard_error = standard_error(values)};
}

TaskScores score_choices(const Task& task, const Answers& answers) {
  TaskScores scores;
  for (size_t i = 0; i < answers.size(); ++i) {
    const TaskDocument& document = task.documents[i];
    const auto is_right = [&](size_t choice) {
      return std::count(document.gold.begin(), document.gold.end(), choice) > 0 ? 1.0 : 0.0;
    };
    const auto& choices = document.choices;
    scores.documents.push_back(
        {{"acc", is_right(best(answers[i], choices, [](const std::string&) { return 1; }))},
         {"acc_norm", is_right(best(answers[i], choices, num_characters))},
         {"acc_bytes", is_right(best(answers[i], choices,
                                     [](const std::string& text) { return text.size(); }))}});
  }
  for (const char* name : {"acc", "acc_norm", "acc_bytes"})
    scores.metrics.push_back(mean_of(scores, name));
  return scores;
}

TaskScores score_continuations(const Answers& answers, int64_t bootstrap_iterations) {
  TaskScores scores;
  std::vector<double> sums;
  for (const auto& answer : answers) {
    sums.push_back(answer.front().sum);
    scores.documents.push_back(
        {{"perplexity", answer.front().sum}, {"acc", answer.front().is_greedy ? 1.0 : 0.0}});
  }
  Metric perplexity{
      .name = "perplexity", .value = std::exp(-mean(sums)), .higher_is_better = false};
  if (sums.size() > 1 && bootstrap_iterations > 1)
    perplexity.standard_error =
        bootstrap_error(sums, bootstrap_iterations, [](double mean) { return std::exp(-mean); });
  scores.metrics = {perplexity, mean_of(scores, "acc")};
  return scores;
}

TaskScores score_texts(const Task& task, const Answers& answers) {
  TaskScores scores;
  double sum = 0;
  int64_t words = 0, bytes = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string& text = task.documents[i].continuations.front();
    const double here = answers[i].front().sum;
    sum += here;
    words += num_words(text);
    bytes += static_cast<int64_t>(text.size());
    scores.documents.push_back(
        {{"word_perplexity", here}, {"byte_perplexity", here}, {"bits_per_byte", here}});
  }
  const double per_byte = sum / static_cast<double>(bytes);
  const auto add = [&](const char* name, double value) {
    scores.metrics.push_back({.name = name, .value = value, .higher_is_better = false});
  };
  add("word_perplexity", std::exp(-sum / static_cast<double>(words)));
  add("byte_perplexity", std::exp(-per_byte));
  add("bits_per_byte", -per_byte / std::numbers::ln2);
  return scores;
}

}  // namespace

std::vector<Answers> answers_by_task(const std::vector<Task>& tasks,
                                     const std::vector<Request>& requests,
                                     const std::vector<LogLikelihood>& answers) {
  TITAN_ASSERT(requests.size() == answers.size());
  std::vector<Answers> all;
  for (const Task& task : tasks) {
    Answers& of_task = all.emplace_back();
    for (const TaskDocument& document : task.documents)
      of_task.emplace_back(document.continuations.size());
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    LogLikelihood& answer = all[request.task][request.document][request.continuation];
    answer.sum += answers[i].sum;
    answer.is_greedy = answer.is_greedy && answers[i].is_greedy;
  }
  return all;
}

TaskScores score(const Task& task, const Answers& answers, int64_t bootstrap_iterations) {
  switch (task.kind()) {
    case TaskKind::multiple_choice:
      return score_choices(task, answers);
    case TaskKind::loglikelihood:
      return score_continuations(answers, bootstrap_iterations);
    case TaskKind::loglikelihood_rolling:
      return score_texts(task, answers);
  }
  fail(ErrorKind::internal, "a task of an unknown kind");
}

}  // namespace titan::evaluation
