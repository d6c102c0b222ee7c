#include "download_run.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include <titan/error.h>
#include <titan/program/clock.h>
#include <titan/program/quantity_text.h>

#include "file_transfer.h"
#include "part_file.h"

namespace titan::download {
namespace {

namespace fs = std::filesystem;

void require_room(const DownloadPlan& plan) {
  int64_t missing = 0;
  for (const RemoteFile& file : plan.files) missing += file.size - bytes_on_disk(file, plan.output);
  std::error_code error;
  const fs::space_info space = fs::space(plan.output, error);
  // some network file systems report no capacity
  if (error || space.capacity == 0 || missing <= 0) return;
  TITAN_CHECK(static_cast<uintmax_t>(missing) <= space.available, io, "there is no room for ",
              bytes_text(static_cast<double>(missing)), " in ", plan.output.string(), ", only for ",
              bytes_text(static_cast<double>(space.available)),
              "; choose another --output, or fewer files by --include and --exclude");
}

/// Fails early when a folder or special file occupies the name of a file, before hours of download.
void require_free_names(const DownloadPlan& plan) {
  std::error_code ignored;
  for (const RemoteFile& file : plan.files) {
    const std::string place = (plan.output / fs::path(file.path)).string();
    for (const std::string& path : {place, part_name(place), note_name(place)})
      TITAN_CHECK(!fs::exists(path, ignored) || fs::is_regular_file(path, ignored), io,
                  "cannot write ", path, ": ",
                  fs::is_directory(path, ignored) ? "it is a folder" : "it is not a regular file",
                  "; move it away or choose another --output");
    for (fs::path folder = fs::path(file.path).parent_path(); folder.has_relative_path();
         folder = folder.parent_path()) {
      const fs::path at = plan.output / folder;
      TITAN_CHECK(!fs::exists(at, ignored) || fs::is_directory(at, ignored), io, "cannot write ",
                  place, ": ", at.string(),
                  " is not a folder; move it away or choose another --output");
    }
  }
}

/// The queue of files and the result of each. Each worker runs work(); the main thread watches.
class Workers {
 public:
  Workers(const DownloadPlan& plan, StopRequest& stop, Progress& progress)
      : plan_(plan), stop_(stop), progress_(progress) {}

  void run(DownloadResult& result) {
    const size_t count = std::clamp<size_t>(plan_.jobs, 1, std::max<size_t>(plan_.files.size(), 1));
    std::vector<std::jthread> threads;
    running_ = count;
    for (size_t i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
    {
      std::unique_lock lock(mutex_);
      while (!idle_.wait_for(lock, std::chrono::duration<double>(progress_.interval()),
                             [&] { return running_ == 0; })) {
        lock.unlock();
        progress_.show();
        lock.lock();
      }
    }
    threads.clear();
    if (fatal_) std::rethrow_exception(fatal_);
    result.kept = kept_;
    result.fetched = fetched_;
    result.replaced = replaced_;
    result.failures = std::move(failures_);
  }

 private:
  void work() {
    // signals go to the main thread, which no transfer delays
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    try {
      HttpClient client(plan_.http, stop_);
      const Retries::Say say = [this](const std::string& line) { progress_.warn(line); };
      const Connection connection = {client, plan_.urls, plan_.retries, stop_, say};
      while (const RemoteFile* file = next()) bring(connection, *file);
    } catch (const Stopped&) {
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!fatal_) fatal_ = std::current_exception();
      stop_.ask();
    }
    const std::lock_guard lock(mutex_);
    --running_;
    idle_.notify_all();
  }

  const RemoteFile* next() {
    const std::lock_guard lock(mutex_);
    return next_ < plan_.files.size() && !stop_.is_asked() ? &plan_.files[next_++] : nullptr;
  }

  void bring(const Connection& connection, const RemoteFile& file) {
    try {
      const FileOutcome outcome =
          bring_file(connection, plan_.commit, file, plan_.output, progress_);
      if (outcome == FileOutcome::replaced)
        progress_.say(file.path + ": replaced a file with other content");
      progress_.add_file();
      const std::lock_guard lock(mutex_);
      ++(outcome == FileOutcome::kept      ? kept_
         : outcome == FileOutcome::fetched ? fetched_
                                           : replaced_);
    } catch (const Error& e) {
      // only this file failed: continue with the others
      if (e.kind() != ErrorKind::data) throw;
      const std::lock_guard lock(mutex_);
      failures_.emplace_back(e.what());
    }
  }

  const DownloadPlan& plan_;
  StopRequest& stop_;
  Progress& progress_;
  std::mutex mutex_;
  std::condition_variable idle_;
  size_t next_ = 0, running_ = 0, kept_ = 0, fetched_ = 0, replaced_ = 0;
  std::vector<std::string> failures_;
  std::exception_ptr fatal_;
};

}  // namespace

DownloadResult run_download(const DownloadPlan& plan, StopRequest& stop) {
  std::error_code error;
  fs::create_directories(plan.output, error);
  TITAN_CHECK(!error, io, "cannot make the output folder ", plan.output.string(), ": ",
              error.message(), "; choose another --output");
  require_free_names(plan);
  require_room(plan);
  int64_t total = 0;
  for (const RemoteFile& file : plan.files) total += file.size;
  const double start = monotonic_seconds();
  DownloadResult result;
  Progress progress(plan.show, plan.files.size(), total);
  Workers(plan, stop, progress).run(result);
  result.bytes_received = progress.received();
  result.seconds = monotonic_seconds() - start;
  return result;
}

}  // namespace titan::download
