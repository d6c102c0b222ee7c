#include "core/train/logging/status_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include <titan/log.h>
#include <titan/program/clock.h>

#include <titan/program/stop_signals.h>
#include "core/runtime/groups/rank_activity.h"

namespace titan::core {
namespace {

constexpr size_t kBlock = 1024;

/// Overwrites without truncating and without blocking; returns 0 or an errno.
int overwrite(const std::filesystem::path& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0) return errno;
  const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), 0);
  const int reason = written < 0 ? errno : static_cast<size_t>(written) < bytes.size() ? ENOSPC : 0;
  return ::close(file) != 0 && reason == 0 ? errno : reason;
}

}  // namespace

StatusFile::StatusFile(std::filesystem::path path, Value fixed, const dist::Mesh& mesh)
    : path_(std::move(path)), fixed_(std::move(fixed)), mesh_(mesh) {
  std::error_code seen_when_writing;
  std::filesystem::create_directories(path_.parent_path(), seen_when_writing);
  std::filesystem::remove(path_, seen_when_writing);  // of an earlier session
  thread_ = std::thread([this] { run(); });
}

StatusFile::~StatusFile() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StatusFile::set(const StatusNumbers& numbers) {
  const std::lock_guard lock(mutex_);
  numbers_ = numbers;
}

void StatusFile::set_step(int64_t step, double seconds_of_last) {
  const std::lock_guard lock(mutex_);
  numbers_.step = step;
  numbers_.step_seconds = seconds_of_last;
}

void StatusFile::run() {
  block_signals();
  bool is_closing = false;
  while (!is_closing) {
    write("running");
    std::unique_lock lock(mutex_);
    is_closing = changed_.wait_for(lock, std::chrono::seconds(1), [this] { return closing_; });
  }
  write("ended");
}

void StatusFile::write(const char* state) {
  if (has_failed_) return;
  std::string bytes = text(state);
  const size_t size = std::max(written_bytes_, (bytes.size() / kBlock + 1) * kBlock);
  bytes.resize(size - 1, ' ');
  bytes += '\n';
  if (const int reason = overwrite(path_, bytes)) {
    has_failed_ = true;
    log::warn("cannot write '" + path_.string() + "': " + std::generic_category().message(reason) +
              "; titan top does not see this rank, training continues");
  }
  written_bytes_ = size;
}

std::string StatusFile::text(const char* state) const {
  StatusNumbers numbers;
  {
    const std::lock_guard lock(mutex_);
    numbers = numbers_;
  }
  const StepClock& clock = mesh_.recorder().clock();
  const StepPhase phase = clock.current();
  Value status = fixed_;
  status["time"] = wall_seconds();
  status["state"] = state;
  status["step"] = numbers.step;
  status["phase"] = name_of(phase);
  status["doing"] = describe_activity(&mesh_, numbers.step);
  status["waiting_seconds"] =
      phase == StepPhase::communication ? monotonic_seconds() - clock.current_since() : 0.0;
  if (numbers.step_seconds > 0) status["step_seconds"] = numbers.step_seconds;
  if (numbers.has_logged) {
    status["tokens_per_second"] = numbers.tokens_per_second;
    status["loss"] = numbers.loss;
    status["memory_bytes"] = numbers.memory_bytes;
    status["memory_total"] = numbers.memory_total;
    status["seconds"] = numbers.seconds;
  }
  return to_json(status);
}

}  // namespace titan::core
