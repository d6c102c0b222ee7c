#include "core/checkpoint/saver.h"

#include <titan/checkpoints/local_parts.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/log.h>
#include <titan/program/clock.h>

#include <titan/program/stop_signals.h>

namespace titan::core {
namespace {

constexpr int kNumThreads = 4;

std::vector<ManifestFile> write_files(const std::filesystem::path& folder, const RankFiles& of) {
  std::vector<ManifestFile> files = write_shards(folder, of.files, kNumThreads);
  if (of.state_name.empty()) return files;
  files.push_back(write_part(folder, of.state_name, of.state_text));
  files.back().first_row = of.first_row;
  files.back().num_rows = of.num_rows;
  return files;
}

/// Writes this rank's files; returns their manifest entries as JSON for the other ranks.
std::string write_part_of_rank(const SaveJob& job) {
  const std::vector<ManifestFile> files = write_files(job.folder, job.own);
  if (job.is_local) write_local_part(job.folder, job.manifest, files, job.own.rank);
  if (job.copy) {
    const std::filesystem::path copies = job.folder / kLocalCopiesName;
    write_local_part(copies, job.manifest, write_files(copies, *job.copy), job.copy->rank);
  }
  Value::List entries;
  for (const ManifestFile& file : files) entries.push_back(to_value(file));
  return to_json(entries);
}

}  // namespace

Saver::Saver(const Rendezvous& rendezvous, std::chrono::seconds patience, CleanUp clean_up,
             std::function<void()> warm_up)
    : agreement_(rendezvous),
      patience_(patience),
      clean_up_(std::move(clean_up)),
      warm_up_(std::move(warm_up)),
      thread_([this] { run(); }) {}

Saver::~Saver() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  agreement_.abandon();
  changed_.notify_all();
  thread_.join();
}

bool Saver::is_busy() const {
  const std::lock_guard lock(mutex_);
  return job_.has_value();
}

void Saver::start(SaveJob job) {
  {
    const std::lock_guard lock(mutex_);
    TITAN_ASSERT(!job_, "a save starts while another is in progress");
    job_ = std::move(job);
    is_copied_ = false;
    outcome_.reset();
  }
  changed_.notify_all();
}

void Saver::wait_until_copied() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_copied_; });
}

std::optional<SaveOutcome> Saver::poll() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcome_, std::nullopt);
}

std::optional<SaveOutcome> Saver::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !job_; });
  return std::exchange(outcome_, std::nullopt);
}

void Saver::run() {
  block_signals();
  if (warm_up_) try {
      warm_up_();
    } catch (const std::exception&) {  // out of memory: the save that needs it will report that
    }
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return job_ || closing_; });
    if (!job_) return;
    lock.unlock();
    const SaveOutcome outcome = write(*job_);  // no other thread touches job_ until it is reset
    lock.lock();
    job_.reset();
    is_copied_ = true;
    outcome_ = outcome;
    lock.unlock();
    changed_.notify_all();
    try {
      clean_up_(outcome);
    } catch (const std::exception& e) {
      log::warn(std::string("the checkpoint folder could not be cleaned up: ") + e.what());
    }
  }
}

void Saver::copy(SaveJob& job) {
  if (!job.staging) return;
  job.staging->copy(job.own.files);
  {
    const std::lock_guard lock(mutex_);
    is_copied_ = true;
  }
  changed_.notify_all();
}

SaveOutcome Saver::write(SaveJob& job) {
  const double start = monotonic_seconds();
  SaveOutcome outcome = {.step = job.manifest.step, .folder = job.folder, .is_local = job.is_local};
  std::string result, error;
  try {
    copy(job);
    result = write_part_of_rank(job);
  } catch (const std::exception& e) {
    error = e.what();
  }
  outcome.error = agreement_.settle(
      num_saves_++, result, error,
      [&](const std::vector<std::string>& results) {
        CheckpointManifest manifest = job.manifest;
        for (const std::string& part : results)
          for (const Value& file : parse_json(part).as_list()) {
            manifest.files.push_back(parse_manifest_file(file, "what a rank has written", ""));
            outcome.bytes += manifest.files.back().bytes;
          }
        if (job.is_local) return;
        write_text_atomically(job.folder / kManifestName, to_text(manifest));
        sync_folder(job.folder.parent_path());  // makes the name of the folder durable,
        sync_folder(job.folder.parent_path().parent_path());  // and that of its parent
      },
      patience_);
  outcome.seconds = monotonic_seconds() - start;
  return outcome;
}

}  // namespace titan::core
