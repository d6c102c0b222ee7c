#include "rank_group.h"

#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include <titan/program/child.h>
#include <titan/program/error_file.h>
#include <titan/program/text.h>
#include <titan/shown_text.h>

#include "event_wait.h"
#include "failure_text.h"

namespace titan::launching {

RankGroup::RankGroup(const LaunchPlan& plan, const Environment& environment, int attempt,
                     Screen& screen, SignalInbox& signals)
    : plan_(plan), screen_(screen), signals_(signals) {
  HostPort master = plan.master.value_or(HostPort{"127.0.0.1", 0});
  if (master.port == 0) master.port = held_port_.emplace(hold_free_port()).number;
  const bool has_prefix = plan.shown_ranks.size() > 1;
  for (int i = 0; i < plan.ranks_here; ++i) {  // all files before the first process
    const int number = plan.first_rank() + i;
    std::optional<std::string> prefix;
    if (plan.shows(number))
      prefix = has_prefix ? "[rank" + std::to_string(number) + "]: " : std::string();
    std::error_code error;
    std::filesystem::remove(plan.error_file_of(number), error);  // an earlier start's
    ranks_.push_back({.number = number,
                      .output = std::make_unique<RankOutput>(plan.log_of(number), attempt, screen,
                                                             std::move(prefix))});
  }
  try {
    for (int i = 0; i < plan.ranks_here; ++i)
      start({plan.program, plan.arguments, rank_environment(plan, environment, i, master, attempt)},
            ranks_[i]);
  } catch (...) {
    kill_all();
    throw;
  }
}

RankGroup::~RankGroup() {
  kill_all();
}

void RankGroup::kill_all() {
  for (const Rank& rank : ranks_) send(rank, SIGKILL);
  for (Rank& rank : ranks_)
    if (std::exchange(rank.is_running, false)) ::waitpid(rank.pid, &rank.status, 0);
}

void RankGroup::start(const ChildCommand& command, Rank& rank) {
  StartedChild child = start_child(command, signals_.outer_mask());
  rank.pid = child.pid;
  rank.is_running = true;
  rank.output->attach(std::move(child.output), std::move(child.errors));
}

GroupEnd RankGroup::run() {
  while (is_running()) {
    bool may_have_ended = false;
    wait_for_events(may_have_ended);
    if (may_have_ended) reap();
    if (deadline_ && Clock::now() >= *deadline_) meet_deadline();
  }
  if (!failed_.empty()) judge();
  if (first_failed_) {
    summarize();
  } else {  // done or stopped: the first nonzero exit code
    for (const Rank& rank : ranks_)
      if (end_.exit_code == 0) end_.exit_code = exit_code_of(rank.status);
  }
  if (outside_.killed_by()) end_.exit_code = 128 + *outside_.killed_by();
  end_.was_stopped = outside_.killed_by() || (!first_failed_ && end_.exit_code != 0) ||
                     outside_.asked_for_the_end();
  return end_;
}

bool RankGroup::is_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.is_running; });
}

/// Forwards output and signals.
void RankGroup::wait_for_events(bool& may_have_ended) {
  std::vector<int> ends;
  for (const Rank& rank : ranks_)
    ends.insert(ends.end(), {rank.output->output_to_poll(), rank.output->errors_to_poll()});
  const Ready ready = launching::wait_for_events(signals_, screen_, ends, deadline_);
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (ready.descriptors[2 * i]) ranks_[i].output->read_output();
    if (ready.descriptors[2 * i + 1]) ranks_[i].output->read_errors();
  }
  if (!ready.signals) return;
  while (const std::optional<int> signal = signals_.next()) {
    if (*signal == SIGCHLD)
      may_have_ended = true;
    else
      pass_on(*signal);
  }
}

void RankGroup::pass_on(int signal) {
  const OutsideSignals::Response response = outside_.take(signal, screen_);
  if (response == OutsideSignals::Response::ignore) return;
  const bool kills = response == OutsideSignals::Response::kill;
  for (const Rank& rank : ranks_) send(rank, kills ? SIGKILL : signal);
}

void RankGroup::reap() {
  for (Rank& rank : ranks_) {
    if (!rank.is_running) continue;
    siginfo_t info = {};
    if (::waitid(P_PID, static_cast<id_t>(rank.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
      continue;
    ::kill(-rank.pid, SIGKILL);  // its own children; waitpid frees the id afterwards
    ::waitpid(rank.pid, &rank.status, 0);
    rank.is_running = false;
    note_end(rank);
  }
}

void RankGroup::note_end(Rank& rank) {
  rank.output->finish();
  const bool is_failure = exit_code_of(rank.status) != 0 && !outside_.killed_by() &&
                          !outside_.is_requested_stop(rank.status);
  if (!is_failure || first_failed_) return;
  failed_.push_back(&rank);
  if (!deadline_) deadline_ = Clock::now() + plan_.same_moment;
}

void RankGroup::meet_deadline() {
  deadline_.reset();
  switch (next_) {
    case Next::judge:
      judge();
      next_ = Next::terminate;
      deadline_ = Clock::now() + plan_.notice;
      return;
    case Next::terminate:
      tell_to_end(SIGTERM);
      next_ = Next::kill;
      deadline_ = Clock::now() + plan_.grace;
      return;
    case Next::kill:
      tell_to_end(SIGKILL);
      next_ = Next::nothing;
      return;
    case Next::nothing:
      return;
  }
}

void RankGroup::tell_to_end(int signal) {
  for (Rank& rank : ranks_) {
    if (!rank.is_running) continue;
    rank.was_told_to_end = true;
    send(rank, signal);
  }
}

/// Selects the first failure of those at the same moment: first ranks ended by a signal, then by
/// the time of the error file, then by the order of exits.
void RankGroup::judge() {
  namespace fs = std::filesystem;
  const auto time_of_error = [&](const Rank* rank) {
    std::error_code error;
    const auto time = fs::last_write_time(plan_.error_file_of(rank->number), error);
    return error ? fs::file_time_type::max() : time;
  };
  first_failed_ = *std::min_element(failed_.begin(), failed_.end(), [&](Rank* a, Rank* b) {
    const auto key = [&](const Rank* rank) {
      return std::pair(!WIFSIGNALED(rank->status), time_of_error(rank));
    };
    return key(a) < key(b);
  });
  failed_.clear();
  report_first_failure();
}

void RankGroup::report_first_failure() {
  const Rank& rank = *first_failed_;
  const std::string how = "rank " + std::to_string(rank.number) + " (pid " +
                          std::to_string(rank.pid) + ") " + how_it_ended(rank.status);
  const std::string said = first_line(what_it_said(rank));
  end_.has_failed = true;
  end_.first = {rank.number, rank.pid, how_it_ended(rank.status),
                is_error(said) ? what_it_said(rank) : std::string()};
  end_.exit_code = exit_code_of(rank.status);
  end_.failure = said.empty() ? how : how + ": " + said;
  screen_.errors.add(printable_lines("error: " + how + output_text(*rank.output)));
  const auto others =
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.is_running; });
  if (others > 0)
    screen_.say("ending the other ranks (" + std::to_string(others) + "): SIGTERM in " +
                seconds_text(plan_.notice) + ", SIGKILL " + seconds_text(plan_.grace) + " later");
}

void RankGroup::send(const Rank& rank, int signal) {
  if (rank.is_running && ::kill(-rank.pid, signal) != 0) ::kill(rank.pid, signal);
}

/// The message of its error file, else the last error line of its log.
std::string RankGroup::what_it_said(const Rank& rank) const {
  const std::string message = read_error_file(plan_.error_file_of(rank.number).string());
  if (message.empty()) return rank.output->last_words();
  return as_error(message);
}

/// The errors of the other ranks, which often show how the first failure affected them.
void RankGroup::summarize() {
  std::string text = "rank " + std::to_string(first_failed_->number) + " failed first";
  std::string ended_silently;
  for (const Rank& rank : ranks_) {
    if (&rank == first_failed_ || exit_code_of(rank.status) == 0) continue;
    const std::string number = std::to_string(rank.number);
    const std::string whole = what_it_said(rank), said = first_line(whole);
    if (end_.first.seen.empty() && is_error(said)) end_.first.seen = whole;
    if (rank.was_told_to_end && !is_error(said)) {
      ended_silently += (ended_silently.empty() ? "" : ", ") + number;
      continue;
    }
    text += "\n  rank " + number + " " + how_it_ended(rank.status);
    if (!said.empty()) text += ": " + said;
  }
  if (!ended_silently.empty())
    text += "\n  ended by this launcher, without an error of their own: " + ended_silently;
  screen_.say(text);
}

}  // namespace titan::launching
