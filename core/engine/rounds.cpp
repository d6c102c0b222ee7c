#include "core/engine/rounds.h"

#include <poll.h>

#include <csignal>
#include <string>
#include <utility>

#include <titan/log.h>
#include <titan/program/exit_codes.h>
#include <titan/program/stop_request.h>
#include <titan/program/stop_signals.h>
#include <titan/program/terminal.h>

#include "core/train/explained_failure.h"

namespace titan::core {
namespace {

using Kind = ControlMessage::Kind;

/// As after a run that was stopped and saved nothing.
int exit_code_after(int signal) {
  if (signal > kStopRequest) return signal - kStopRequest;
  return signal == SIGINT ? kExitInterrupted : kExitTerminated;
}

}  // namespace

/// A thread that waits for the launcher's abort of one round.
class Rounds::AbortListener {
 public:
  AbortListener(ControlEnd& control, int round,
                std::function<void(const std::string&)> when_aborted)
      : thread_([this, &control, round, when_aborted = std::move(when_aborted)] {
          listen(control, round, when_aborted);
        }) {}
  ~AbortListener() {
    stop_.write_end.close();
    thread_.join();
  }
  AbortListener(const AbortListener&) = delete;

 private:
  void listen(ControlEnd& control, int round,
              const std::function<void(const std::string&)>& when_aborted) {
    block_signals();
    try {
      while (!control.is_closed()) {
        pollfd ends[] = {{stop_.read_end.get(), POLLIN, 0}, {control.descriptor(), POLLIN, 0}};
        ::poll(ends, 2, -1);
        if (ends[0].revents != 0) return;
        while (const auto message = control.receive())
          if (message->kind == Kind::abort && message->round == round) when_aborted(message->text);
      }
    } catch (const std::exception& e) {  // the launcher then kills this process
      log::error(e.what());
    }
  }

  PipeEnds stop_ = make_pipe();
  std::thread thread_;
};

Rounds::Rounds(ControlEnd control, LaunchEnv launch)
    : control_(std::move(control)), launch_(std::move(launch)) {}

Rounds::~Rounds() = default;

Rounds::Next Rounds::wait() {
  listener_.reset();  // it reads from the channel too
  control_.send({.kind = Kind::ready, .round = round_});
  for (;;) {
    if (const int signal = StopSignals::received()) return {std::nullopt, exit_code_after(signal)};
    while (const auto message = control_.receive()) {
      if (message->kind == Kind::end)
        return {std::nullopt, round_ < 0 ? kExitDone : kExitRuntimeError};
      if (message->kind != Kind::begin) continue;
      round_ = message->round;
      has_reported_ = false;
      is_aborted_ = std::make_shared<std::atomic<bool>>(false);
      reason_.reset();
      listener_ = std::make_unique<AbortListener>(
          control_, round_, [this](const std::string& reason) { aborted(reason); });
      LaunchEnv next = launch_;
      next.rank = next.local_rank = message->rank;
      next.master_port = message->port;
      next.restart_count = message->round;
      return {std::move(next), kExitDone};
    }
    TITAN_CHECK(!control_.is_closed(), io, "titan launch has ended, without which no rank starts");
    pollfd end{control_.descriptor(), POLLIN, 0};
    ::poll(&end, 1, 100);  // ms: a signal may come between the check above and this call
  }
}

IsInterrupted Rounds::is_interrupted() const {
  return [is_aborted = is_aborted_] { return is_aborted->load(); };
}

void Rounds::aborted(const std::string& reason) {
  is_aborted_->store(true);
  const std::lock_guard lock(mutex_);
  reason_ = reason;
  if (watch_) watch_->learn(reason);
}

/// The collectives of `watch` are aborted with the round; null: of none.
void Rounds::watch(FailureWatch* watch) {
  const std::lock_guard lock(mutex_);
  watch_ = watch;
  if (watch && reason_) watch->learn(*reason_);
}

void Rounds::built() {
  control_.send({.kind = Kind::training, .round = round_});
}

void Rounds::work(std::unique_ptr<Run>& run, Rendezvous& rendezvous, FailureWatch& failure_watch,
                  const std::function<void()>& work) {
  watch(&failure_watch);
  with_errors(work, [&](Error& error) {
    watch(nullptr);
    rendezvous.abandon();
    if (run->loader && run->loader->has_stalled()) {
      must_end_ = true;
      static_cast<void>(run.release());
    }
    const std::string line = failure_watch.record_line();
    if (error.kind() == ErrorKind::distributed && !line.empty()) error.with_context(line);
    failed(error);
    // the launcher aborts the round in the other ranks only; here it has ended, so no thread waits
    // at the store any longer
    is_aborted_->store(true);
  });
  watch(nullptr);
}

bool Rounds::failed(const Error& error) {
  if (error.kind() == ErrorKind::config || error.kind() == ErrorKind::plugin || must_end_ ||
      StopSignals::received() != 0)
    return false;
  if (std::exchange(has_reported_, true)) return true;
  print_error(error.what());
  control_.send({.kind = Kind::failed, .round = round_, .text = error.what()});
  return true;
}

}  // namespace titan::core
