#include "rank_limit.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/program/text.h>

#include "../common/child_output.h"
#include "../common/run_config.h"

namespace titan::launching {
namespace {

constexpr double kSecondsToAsk = 600;
constexpr int kFailuresOfOneRank = 2;

/// Why the job cannot run on `num_ranks` ranks; empty: it can.
std::string refusal(const LaunchPlan& plan, int num_ranks) {
  std::vector<std::string> arguments = plan.arguments;
  arguments.insert(arguments.end(), {"--dry-run", "--world-size", std::to_string(num_ranks)});
  const commands::ChildOutput dry_run =
      commands::output_of(plan.program, std::move(arguments), kSecondsToAsk);
  if (!dry_run.succeeded()) return std::string(trimmed(dry_run.errors));
  const auto config = commands::parse_run_config("the output of --dry-run", dry_run.out);
  const auto batch = config.find("training.global_batch_size");
  TITAN_CHECK(batch != config.end() && batch->second != "-1", config,
              "--ranks needs training.global_batch_size: with -1 the batch would change with the "
              "number of ranks");
  return "";
}

std::string ranks_text(int count) {
  return std::to_string(count) + (count == 1 ? " rank" : " ranks");
}

}  // namespace

const std::string& RankLimit::problem_of(const LaunchPlan& plan, int num_ranks) {
  const auto known = problems_.find(num_ranks);
  if (known != problems_.end()) return known->second;
  return problems_.emplace(num_ranks, refusal(plan, num_ranks)).first->second;
}

int RankLimit::num_that_can_start(const LaunchPlan& plan, const FailureStreak& streak) const {
  if (!plan.available.empty()) {
    const commands::ChildOutput asked =
        commands::output_of("/bin/sh", {"-c", plan.available}, kSecondsToAsk);
    TITAN_CHECK(asked.succeeded(), io, "--available '", plan.available, "' ",
                how_it_ended(asked.status), ": ", trimmed(asked.errors));
    const auto count = static_cast<int>(
        parse_integer(std::string(trimmed(asked.out)),
                      "the output of --available '" + plan.available + "'", 0, 1 << 20));
    return std::min(count, plan.most_ranks);
  }
  if (streak.has_progressed()) return plan.most_ranks;
  if (streak.num_of_rank() < kFailuresOfOneRank) return can_start_;
  return std::max(plan.ranks_here - 1, plan.least_ranks);
}

void RankLimit::choose(LaunchPlan& plan, FailureStreak& streak, Screen& screen) {
  const int before = plan.ranks_here;
  can_start_ = num_that_can_start(plan, streak);
  int chosen = can_start_;
  while (chosen >= plan.least_ranks && !problem_of(plan, chosen).empty()) --chosen;
  if (chosen < plan.least_ranks && has_started_ && plan.available.empty()) {
    screen.say("no smaller number of ranks fits this job, so no rank is left out; for " +
               ranks_text(can_start_) + ": " + first_line(problem_of(plan, can_start_)));
    chosen = before;
  }
  const std::string range =
      std::to_string(plan.least_ranks) + ":" + std::to_string(plan.most_ranks);
  TITAN_CHECK(chosen >= plan.least_ranks || can_start_ >= plan.least_ranks, io, "only ",
              ranks_text(can_start_), " can start, but --ranks is ", range);
  TITAN_CHECK(chosen >= plan.least_ranks, config, "no number of ranks from ", plan.least_ranks,
              " to ", can_start_, " fits this job; for ", ranks_text(can_start_), ":\n",
              problem_of(plan, can_start_));
  plan.ranks_here = chosen;
  if (!has_started_ && chosen < plan.most_ranks)
    screen.say("--ranks " + range + ": starting " + ranks_text(chosen) +
               (chosen < can_start_ ? ", the most that the layout allows" : ""));
  if (has_started_ && chosen != before) {
    screen.say("now " + ranks_text(chosen) + " instead of " + std::to_string(before));
    streak.reset();
  }
  has_started_ = true;
}

}  // namespace titan::launching
