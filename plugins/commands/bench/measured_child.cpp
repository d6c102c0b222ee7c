#include "measured_child.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>

#include <titan/program/clock.h>
#include <titan/value.h>

namespace titan::commands {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// The step of a line {"step": n, ...}; none for other lines.
std::optional<int64_t> step_in(std::string_view line) {
  if (line.empty() || line.front() != '{') return std::nullopt;
  try {
    const Value value = parse_json(line);
    const Value* step = value.find("step");
    if (step && step->is_integer()) return step->as_integer();
  } catch (const Error&) {  // a program may print text that is not JSON
  }
  return std::nullopt;
}

/// Reads the available bytes; false at the end of the stream.
bool take(const Descriptor& from, std::string& into) {
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
    if (count > 0) into.append(buffer.data(), static_cast<size_t>(count));
    if (count == 0) return false;
    if (count < 0 && errno != EINTR) return errno == EAGAIN;
  }
}

class Measurement {
 public:
  Measurement(const ChildCommand& command, const std::optional<std::filesystem::path>& metrics,
              SignalInbox& signals)
      : metrics_(metrics), signals_(signals) {
    if (metrics_) watch_folder(metrics_->parent_path());
    run_.launched = wall_seconds();
    began_ = monotonic_seconds();
    child_ = start_child(command, signals.outer_mask());
    counters_.emplace(child_.pid);
    run_.counters_refused = counters_->refusal();
  }

  MeasuredRun finish() {
    while (is_output_open_ || is_errors_open_) wait_for_more();
    rusage usage = {};
    while (::wait4(child_.pid, &run_.status, 0, &usage) < 0 && errno == EINTR) {
    }
    run_.seconds = monotonic_seconds() - began_;
    run_.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    run_.peak_resident_bytes = int64_t{usage.ru_maxrss} * 1024;
    read_marks();
    return std::move(run_);
  }

 private:
  void watch_folder(const std::filesystem::path& folder) {
    changes_ = Descriptor(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    TITAN_CHECK(changes_.is_open() &&
                    ::inotify_add_watch(changes_.get(), folder.c_str(), IN_CREATE | IN_MODIFY) >= 0,
                io, "cannot watch the folder '", folder.string(), "': ", system_message(errno));
  }

  void wait_for_more() {
    std::array<pollfd, 4> polled = {pollfd{is_output_open_ ? child_.output.get() : -1, POLLIN, 0},
                                    pollfd{is_errors_open_ ? child_.errors.get() : -1, POLLIN, 0},
                                    pollfd{signals_.descriptor(), POLLIN, 0},
                                    pollfd{changes_.get(), POLLIN, 0}};
    if (::poll(polled.data(), polled.size(), -1) < 0) return;
    if (polled[0].revents) is_output_open_ = take(child_.output, run_.output);
    if (polled[1].revents) is_errors_open_ = take(child_.errors, run_.errors);
    if (polled[2].revents) take_signals();
    if (polled[3].revents) {
      std::string ignored;
      take(changes_, ignored);
    }
    read_marks();
  }

  void take_signals() {
    while (const std::optional<int> signal = signals_.next()) {
      if (*signal == SIGCHLD) continue;
      ::kill(-child_.pid, SIGKILL);
      ::waitpid(child_.pid, nullptr, 0);
      fail(ErrorKind::io, "stopped by ", signal_name(*signal), "; nothing was measured");
    }
  }

  /// Adds marks for new lines of the file or of standard output.
  void read_marks() {
    if (metrics_ && !file_.is_open())
      file_ = Descriptor(::open(metrics_->c_str(), O_RDONLY | O_CLOEXEC));
    if (metrics_ && !file_.is_open()) return;
    if (metrics_) take(file_, lines_);
    const std::string& text = metrics_ ? lines_ : run_.output;
    const size_t num_before = run_.marks.size();
    for (size_t end = 0; (end = text.find('\n', read_)) != text.npos; read_ = end + 1)
      if (const auto step = step_in(std::string_view(text).substr(read_, end - read_)))
        run_.marks.push_back({*step, std::nullopt});
    if (run_.marks.size() > num_before) run_.marks.back().counts = counters_->read();
  }

  std::optional<std::filesystem::path> metrics_;
  SignalInbox& signals_;
  Descriptor changes_, file_;
  std::string lines_;
  size_t read_ = 0;  // bytes of lines_, or of the output, already parsed
  MeasuredRun run_;
  double began_ = 0;
  StartedChild child_;
  std::optional<ProcessCounters> counters_;
  bool is_output_open_ = true, is_errors_open_ = true;
};

}  // namespace

MeasuredRun run_measured(const ChildCommand& command,
                         const std::optional<std::filesystem::path>& metrics,
                         SignalInbox& signals) {
  return Measurement(command, metrics, signals).finish();
}

}  // namespace titan::commands
