#include "failure_streak.h"

#include <algorithm>
#include <cctype>

#include <titan/program/text.h>

namespace titan::launching {
namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// Replaces each word that contains a digit by '#'.
std::string without_numbers(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    const std::string word = text.substr(i, end - i);
    result += std::any_of(word.begin(), word.end(), is_digit) ? "#" : word;
    if (end < text.size()) result += text[end++];
    i = end;
  }
  return result;
}

}  // namespace

std::string cause_of(const RankFailure& failure) {
  return failure.how + ": " + without_numbers(first_line(failure.error));
}

std::string to_text(const RankFailure& failure, const FailedAt& at) {
  std::string text = "rank " + std::to_string(failure.rank);
  if (at.step) text += (at.is_exact ? " at step " : " at about step ") + std::to_string(*at.step);
  text += " " + failure.how;
  return failure.error.empty() ? text : text + ": " + first_line(failure.error);
}

int FailureStreak::add(const RankFailure& failure, const FailedAt& at) {
  const std::string cause = cause_of(failure);
  has_progressed_ =
      !is_first_ && (at.newest_save != at_.newest_save || at.newest_local > best_local_);
  best_local_ = std::max(best_local_, at.newest_local);
  is_first_ = false;
  const bool is_same_step = !at.is_exact || !at_.is_exact || at.step == at_.step;
  count_ = count_ > 0 && !has_progressed_ && cause == cause_ && is_same_step ? count_ + 1 : 1;
  count_of_rank_ = !has_progressed_ && failure.rank == rank_ ? count_of_rank_ + 1 : 1;
  rank_ = failure.rank;
  cause_ = cause;
  at_ = at;
  return count_;
}

}  // namespace titan::launching
