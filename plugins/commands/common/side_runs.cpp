#include "side_runs.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <utility>

#include <titan/error.h>
#include <titan/program/clock.h>
#include <titan/program/environment.h>

namespace titan::commands {
namespace {

std::vector<std::string> environment_of(const SideRun& run) {
  std::vector<std::string> entries;
  const Environment here = Environment::of_process();
  for (const auto& [name, value] : here.variables())
    if (!run.environment.contains(name)) entries.push_back(name + "=" + value);
  for (const auto& [name, value] : run.environment) entries.push_back(name + "=" + value);
  return entries;
}

struct RunningProgram {
  size_t index = 0;
  StartedChild child;
  Descriptor log;
  double began = 0;
};

class SideRuns {
 public:
  SideRuns(const std::vector<SideRun>& runs, SignalInbox& signals, const SideRunEvents& events)
      : runs_(runs), signals_(signals), events_(events) {
    end_.runs.resize(runs.size());
  }
  SideRuns(const SideRuns&) = delete;

  ~SideRuns() {
    send(SIGKILL);
    for (const RunningProgram& running : running_) ::waitpid(running.child.pid, nullptr, 0);
  }

  SideRunsEnd run(size_t parallel) {
    size_t next = 0;
    while (true) {
      while (!end_.stopped_by && next < runs_.size() && running_.size() < parallel) start(next++);
      if (running_.empty()) return std::move(end_);
      wait_for_events();
      reap();
    }
  }

 private:
  void start(size_t index) {
    const SideRun& run = runs_[index];
    RunningProgram started{.index = index, .began = monotonic_seconds()};
    if (run.log) {
      started.log =
          Descriptor(::open(run.log->c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
      TITAN_CHECK(started.log.is_open(), io, "cannot write the log '", run.log->string(),
                  "': ", system_message(errno));
    }
    started.child = start_child(
        {.program = run.program, .arguments = run.arguments, .environment = environment_of(run)},
        signals_.outer_mask());
    end_.runs[index].was_started = true;
    running_.push_back(std::move(started));
    events_.started(index);
  }

  void wait_for_events() {
    std::vector<pollfd> ends{{signals_.descriptor(), POLLIN, 0}};
    for (const RunningProgram& running : running_) {
      ends.push_back({running.child.output.get(), POLLIN, 0});
      ends.push_back({running.child.errors.get(), POLLIN, 0});
    }
    if (::poll(ends.data(), ends.size(), -1) < 0) return;
    for (size_t i = 0; i < running_.size(); ++i) {
      if (ends[1 + 2 * i].revents) take(running_[i], running_[i].child.output, &SideRunEnd::output);
      if (ends[2 + 2 * i].revents) take(running_[i], running_[i].child.errors, &SideRunEnd::errors);
    }
    while (const std::optional<int> signal = signals_.next())
      if (*signal != SIGCHLD) pass_on(*signal);
  }

  /// Reads the available bytes of a stream and closes it at its end.
  void take(RunningProgram& running, Descriptor& from, std::string SideRunEnd::*into) {
    std::array<char, 1 << 16> buffer;
    while (from.is_open()) {
      const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
      if (count > 0) {
        keep(running, {buffer.data(), static_cast<size_t>(count)}, into);
        continue;
      }
      if (count < 0 && errno == EINTR) continue;
      if (count == 0 || errno != EAGAIN) from.close();
      return;
    }
  }

  void keep(const RunningProgram& running, std::string_view text, std::string SideRunEnd::*into) {
    if (!running.log.is_open()) {
      (end_.runs[running.index].*into).append(text);
      return;
    }
    while (!text.empty()) {
      const ssize_t count = ::write(running.log.get(), text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      TITAN_CHECK(count >= 0, io, "cannot write the log '", runs_[running.index].log->string(),
                  "': ", system_message(errno));
      text.remove_prefix(static_cast<size_t>(count));
    }
  }

  void pass_on(int signal) {
    if (signal == SIGUSR2) return send(signal);
    if (!end_.stopped_by || *end_.stopped_by == SIGUSR1) {
      if (end_.stopped_by == signal) return;
      end_.stopped_by = signal;
      return send(signal);
    }
    if (signal != SIGUSR1) send(SIGKILL);
  }

  void send(int signal) {
    for (const RunningProgram& running : running_)
      if (::kill(-running.child.pid, signal) != 0) ::kill(running.child.pid, signal);
  }

  void reap() {
    for (size_t i = 0; i < running_.size();) {
      RunningProgram& running = running_[i];
      siginfo_t info = {};
      if (::waitid(P_PID, static_cast<id_t>(running.child.pid), &info,
                   WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid == 0) {
        ++i;
        continue;
      }
      ::kill(-running.child.pid, SIGKILL);  // its own children; waitpid frees the id afterwards
      SideRunEnd& end = end_.runs[running.index];
      ::waitpid(running.child.pid, &end.status, 0);
      end.seconds = monotonic_seconds() - running.began;
      take(running, running.child.output, &SideRunEnd::output);
      take(running, running.child.errors, &SideRunEnd::errors);
      const size_t index = running.index;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      events_.ended(index, end);
    }
  }

  const std::vector<SideRun>& runs_;
  SignalInbox& signals_;
  const SideRunEvents& events_;
  std::vector<RunningProgram> running_;
  SideRunsEnd end_;
};

}  // namespace

SideRunsEnd run_side_by_side(const std::vector<SideRun>& runs, size_t parallel,
                             SignalInbox& signals, const SideRunEvents& events) {
  TITAN_ASSERT(parallel > 0);
  return SideRuns(runs, signals, events).run(parallel);
}

}  // namespace titan::commands
