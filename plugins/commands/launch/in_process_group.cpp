#include "in_process_group.h"

#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <titan/program/child.h>
#include <titan/program/text.h>
#include <titan/shown_text.h>

#include "event_wait.h"
#include "failure_text.h"

namespace titan::launching {
namespace {

using Kind = ControlMessage::Kind;

constexpr int kMostLostSpares = 3;  // then spares cannot start here

}  // namespace

std::string InProcessGroup::Seat::name_and_pid() const {
  return name() + " (pid " + std::to_string(process.pid) + ")";
}

InProcessGroup::InProcessGroup(const LaunchPlan& plan, const Environment& environment,
                               Screen& screen, SignalInbox& signals)
    : plan_(plan), environment_(environment), screen_(screen), signals_(signals) {
  const bool has_prefix = plan.shown_ranks.size() > 1;
  for (int rank = 0; rank < plan.ranks_here; ++rank) {  // all files before the first process
    std::optional<std::string> prefix;
    if (plan.shows(rank))
      prefix = has_prefix ? "[rank" + std::to_string(rank) + "]: " : std::string();
    ranks_.push_back(
        {.number = rank,
         .output = std::make_unique<RankOutput>(plan.log_of(rank), 0, screen, std::move(prefix))});
  }
}

InProcessGroup::~InProcessGroup() {
  for (const Seat* seat : all()) seat->process.send(SIGKILL);
  for (Seat* seat : all())
    if (std::exchange(seat->process.is_running, false))
      ::waitpid(seat->process.pid, &seat->process.status, 0);
}

std::vector<InProcessGroup::Seat*> InProcessGroup::all() {
  std::vector<Seat*> seats;
  for (std::vector<Seat>* of : {&ranks_, &spares_})
    for (Seat& seat : *of) seats.push_back(&seat);
  return seats;
}

GroupEnd InProcessGroup::run(int round) {
  round_ = round;
  end_ = {};
  next_ = Next::judge;
  deadline_.reset();
  failed_.clear();
  first_failed_ = nullptr;
  begin();
  while (!is_over()) {
    wait_for_events();
    if (deadline_ && Clock::now() >= *deadline_) meet_deadline();
    start_missing_spares();
  }
  return conclude();
}

/// Each round has a store of its own, because the process that hosted the last one may be gone.
void InProcessGroup::begin() {
  held_port_ = hold_free_port();
  std::string stays;
  for (Seat& seat : ranks_) {
    if (round_ > 0) seat.output->begin_restart(round_);
    if (seat.process.is_running)
      stays += (stays.empty() ? "" : ", ") + seat.name_and_pid();
    else
      fill(seat);
  }
  if (!stays.empty()) screen_.say("in their processes: " + stays);
  for (Seat& seat : ranks_) {
    RankProcess& process = seat.process;
    process.is_training = process.is_ready = process.was_killed = false;
    process.error.reset();
    process.control.send(
        {.kind = Kind::begin, .round = round_, .rank = seat.number, .port = held_port_->number});
  }
}

/// A spare that is ready takes the place, else one that still starts, else a new process.
void InProcessGroup::fill(Seat& seat) {
  const auto spare =
      std::max_element(spares_.begin(), spares_.end(), [](const Seat& a, const Seat& b) {
        const auto key = [](const Seat& s) {
          return std::pair(s.process.is_running, s.process.is_ready);
        };
        return key(a) < key(b);
      });
  if (spare != spares_.end() && spare->process.is_running) {
    screen_.say(spare->name_and_pid() + " takes the place of " + seat.name());
    seat.output->take_streams(*spare->output);
    seat.process = std::move(spare->process);
    spares_.erase(spare);
    return;
  }
  start(seat);
  if (round_ > 0) screen_.say("a new process takes the place of " + seat.name_and_pid());
}

void InProcessGroup::start(Seat& seat) {
  const auto error_file = seat.is_spare
                              ? plan_.log_of_spare(seat.number).replace_extension(".error.json")
                              : plan_.error_file_of(seat.number);
  const int local_rank = seat.is_spare ? plan_.ranks_here - 1 : seat.number;
  seat.process = start_process(plan_, environment_, local_rank, {"127.0.0.1", held_port_->number},
                               round_, error_file, *seat.output, signals_.outer_mask());
}

/// Ranks come first: spares start when all ranks train.
void InProcessGroup::start_missing_spares() {
  const bool all_train = std::all_of(ranks_.begin(), ranks_.end(), [](const Seat& seat) {
    return seat.process.is_running && seat.process.is_training;
  });
  if (!all_train || has_failure() || must_end()) return;
  while (static_cast<int>(spares_.size()) < plan_.num_spares && lost_spares_ < kMostLostSpares) {
    Seat spare{.number = next_spare_++, .is_spare = true};
    spare.output =
        std::make_unique<RankOutput>(plan_.log_of_spare(spare.number), 0, screen_, std::nullopt);
    start(spare);
    spares_.push_back(std::move(spare));
  }
}

/// Without a failure: every rank has ended. After one: each has ended or has left the round.
bool InProcessGroup::is_over() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [&](const Seat& seat) {
    return has_failure() ? seat.process.is_out() : !seat.process.is_running;
  });
}

/// Forwards output and signals, takes messages.
void InProcessGroup::wait_for_events() {
  const std::vector<Seat*> seats = all();
  std::vector<int> ends;
  for (const Seat* seat : seats) {
    const ControlEnd& control = seat->process.control;
    ends.insert(ends.end(), {seat->output->output_to_poll(), seat->output->errors_to_poll(),
                             control.is_closed() ? -1 : control.descriptor()});
  }
  const Ready ready = launching::wait_for_events(signals_, screen_, ends, deadline_);
  for (size_t i = 0; i < seats.size(); ++i) {
    if (ready.descriptors[3 * i]) seats[i]->output->read_output();
    if (ready.descriptors[3 * i + 1]) seats[i]->output->read_errors();
    if (ready.descriptors[3 * i + 2]) receive(*seats[i]);
  }
  if (!ready.signals) return;
  bool may_have_ended = false;
  while (const std::optional<int> signal = signals_.next()) {
    if (*signal == SIGCHLD)
      may_have_ended = true;
    else
      pass_on(*signal);
  }
  if (may_have_ended) reap();
}

void InProcessGroup::receive(Seat& seat) {
  RankProcess& process = seat.process;
  while (const auto message = process.control.receive()) {
    if (seat.is_spare) {
      if (message->kind != Kind::ready) continue;
      process.is_ready = true;
      lost_spares_ = 0;
      screen_.say(seat.name_and_pid() + " is ready");
      continue;
    }
    if (message->round != round_) continue;  // a spare's, or of a round before
    if (message->kind == Kind::training) process.is_training = true;
    if (message->kind == Kind::ready) process.is_ready = true;
    if (message->kind != Kind::failed) continue;
    process.error = message->text;
    note_failure(seat);
  }
}

bool InProcessGroup::must_end() const {
  return outside_.killed_by() || outside_.asked_to_stop();
}

void InProcessGroup::pass_on(int signal) {
  switch (outside_.take(signal, screen_)) {
    case OutsideSignals::Response::ignore:
      return;
    case OutsideSignals::Response::kill:
      for (const Seat* seat : all()) seat->process.send(SIGKILL);
      return;
    case OutsideSignals::Response::pass_on:
      for (const Seat& seat : ranks_) seat.process.send(signal);
      if (signal == SIGUSR2) return;  // spares take part in no collective
      for (const Seat& spare : spares_) spare.process.send(SIGKILL);
  }
}

void InProcessGroup::reap() {
  for (Seat* seat : all()) {
    RankProcess& process = seat->process;
    if (!process.is_running) continue;
    siginfo_t info = {};
    if (::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
      continue;
    receive(*seat);
    ::kill(-process.pid, SIGKILL);  // its own children; waitpid frees the id afterwards
    ::waitpid(process.pid, &process.status, 0);
    process.is_running = false;
    process.control.close();
    seat->output->finish();
    seat->is_spare ? note_end_of_spare(*seat) : note_end(*seat);
  }
  std::erase_if(spares_, [](const Seat& spare) { return !spare.process.is_running; });
}

void InProcessGroup::note_end_of_spare(const Seat& spare) {
  if (must_end() || spare.process.was_killed) return;
  if (!spare.process.is_ready) ++lost_spares_;
  const std::string said = first_line(spare.process.what_it_said(*spare.output));
  screen_.say(spare.name_and_pid() + " " + how_it_ended(spare.process.status) +
              (said.empty() ? "" : ": " + said) + "; the ranks are not affected" +
              (lost_spares_ < kMostLostSpares
                   ? ""
                   : "; no more spares are started, because " + std::to_string(lost_spares_) +
                         " in a row ended before they were ready"));
}

void InProcessGroup::note_end(Seat& seat) {
  const RankProcess& process = seat.process;
  if (process.error || process.was_killed || outside_.killed_by()) return;
  if (exit_code_of(process.status) == 0 || outside_.is_requested_stop(process.status)) return;
  note_failure(seat);
}

/// The first failure aborts the round in the other ranks.
void InProcessGroup::note_failure(Seat& seat) {
  const bool is_first = !has_failure();
  if (!first_failed_) failed_.push_back(&seat);
  if (!is_first) return;
  deadline_ = Clock::now() + plan_.same_moment;
  const std::string reason = seat.name() + " " + seat.process.how_it_failed();
  for (Seat& other : ranks_)
    if (&other != &seat && other.process.is_running)
      other.process.control.send({.kind = Kind::abort, .round = round_, .text = reason});
}

void InProcessGroup::meet_deadline() {
  deadline_.reset();
  if (next_ == Next::judge) {
    judge();
    next_ = Next::kill;
    deadline_ = Clock::now() + plan_.grace;
    return;
  }
  if (std::exchange(next_, Next::nothing) != Next::kill) return;
  for (Seat& seat : ranks_) {
    if (seat.process.is_out()) continue;
    screen_.say(seat.name_and_pid() + " did not leave the run within " + seconds_text(plan_.grace) +
                " (--grace): killing it");
    seat.process.was_killed = true;
    seat.process.send(SIGKILL);
  }
}

/// Selects the first failure of those at the same moment: first ranks ended by a signal, then in
/// the order of the reports.
void InProcessGroup::judge() {
  first_failed_ = *std::min_element(failed_.begin(), failed_.end(), [](Seat* a, Seat* b) {
    const auto key = [](const Seat* seat) {
      return seat->process.error || !WIFSIGNALED(seat->process.status);
    };
    return key(a) < key(b);
  });
  failed_.clear();
  const Seat& seat = *first_failed_;
  const std::string how = seat.name_and_pid() + " " + seat.process.how_it_failed();
  const std::string whole = seat.process.what_it_said(*seat.output), said = first_line(whole);
  end_.has_failed = true;
  end_.first = {seat.number, seat.process.pid, seat.process.how_it_failed(),
                is_error(said) ? whole : std::string()};
  end_.exit_code = seat.process.exit_code();
  end_.failure = said.empty() ? how : how + ": " + said;
  screen_.errors.add(printable_lines("error: " + how + output_text(*seat.output)));
}

/// The errors of the other ranks, which often show how the first failure affected them.
void InProcessGroup::summarize() {
  std::string text = first_failed_->name() + " failed first";
  for (const Seat& seat : ranks_) {
    const RankProcess& process = seat.process;
    if (&seat == first_failed_ || process.was_killed || process.exit_code() == 0) continue;
    const std::string whole = process.what_it_said(*seat.output), said = first_line(whole);
    if (end_.first.seen.empty() && is_error(said)) end_.first.seen = whole;
    text +=
        "\n  " + seat.name() + " " + process.how_it_failed() + (said.empty() ? "" : ": " + said);
  }
  screen_.say(text);
}

GroupEnd InProcessGroup::conclude() {
  if (!failed_.empty()) judge();
  if (first_failed_) {
    summarize();
  } else {  // done or stopped: the first nonzero exit code
    for (const Seat& seat : ranks_)
      if (end_.exit_code == 0) end_.exit_code = exit_code_of(seat.process.status);
  }
  if (outside_.killed_by()) end_.exit_code = 128 + *outside_.killed_by();
  end_.was_stopped = must_end() || (!first_failed_ && end_.exit_code != 0);
  return end_;
}

void InProcessGroup::end() {
  for (Seat* seat : all()) seat->process.control.send({.kind = Kind::end});
  for (Seat& spare : spares_) {  // one that still starts reads no order
    spare.process.was_killed = true;
    spare.process.send(SIGKILL);
  }
  next_ = Next::kill;
  deadline_ = Clock::now() + plan_.grace;
  const auto is_left = [](const Seat* seat) { return seat->process.is_running; };
  const auto left = [&] {
    const std::vector<Seat*> seats = all();
    return std::any_of(seats.begin(), seats.end(), is_left);
  };
  for (Seat& seat : ranks_) seat.process.is_ready = false;
  while (left()) {
    wait_for_events();
    if (deadline_ && Clock::now() >= *deadline_) meet_deadline();
  }
}

}  // namespace titan::launching
