// Reports a failure of one rank to every rank: which rank failed and why, what the others were
// doing, and which ranks do not respond. FailurePolicy decides what a rank does that hangs
// meanwhile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <titan/dist/mesh.h>

#include "core/runtime/groups/failure_policy.h"
#include "core/runtime/groups/flight_recorder.h"
#include "core/runtime/groups/rendezvous.h"

namespace titan::core {

/// A thread that polls the store twice a second for a failure, and for SIGUSR2, which requests a
/// flight record. Does nothing in a run of one rank.
class FailureWatch {
 public:
  /// Time between learning of a failure and FailurePolicy::overdue.
  static constexpr std::chrono::seconds kPatience{3};
  /// Limit for one answer of the store, once this rank is exiting.
  static constexpr std::chrono::seconds kAnswerLimit{5};
  /// Minimum time that the rank that hosts the store stays after all have answered.
  static constexpr std::chrono::milliseconds kLinger{1200};

  FailureWatch(const Rendezvous& rendezvous, std::unique_ptr<FailurePolicy> policy,
               FlightFiles files = {});
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;

  /// From now on reports include these groups' collectives. `mesh` outlives the watch.
  void watch(const dist::Mesh& mesh);
  void set_step(int64_t step) { step_ = step; }
  /// [any thread] Another source than the store knows of a failure: FailurePolicy::learned, also
  /// for groups that are made later.
  void learn(const std::string& failure);
  /// The object that this rank builds before its first step; `stage` outlives the watch.
  void set_stage(const char* stage) { stage_ = stage; }

  /// [any thread] Writes this rank's flight record, its last collectives. Returns the path, or ""
  /// if there is nothing to write or writing fails. Done before FailurePolicy::overdue.
  std::string write_record() const;
  /// The same, as a line of an error that says where the record is; "" if nothing was written.
  std::string record_line() const;

  /// [trainer thread, when this rank exits after a failure] Publishes the error, unless another
  /// rank was first, waits up to kPatience for the answers of the others, and returns lines to add
  /// to the error.
  std::vector<std::string> report(const std::string& error);

  /// [any thread, while the trainer thread hangs] Reports the first line of `error` as `report`
  /// does, writes the flight record and ends the process (FailurePolicy::hung). Returns if another
  /// rank has failed before, because this watch then ends the process.
  void end_run(const std::string& error);

 private:
  void run();
  void stop();
  std::string doing() const;
  std::string status() const;
  std::vector<std::string> describe_others(const StoreClient& store) const;
  bool have_all_answered(const StoreClient& store) const;
  void wait_for_readers(const StoreClient& store) const;
  void remember(const std::string& failure, const std::vector<std::string>& others);

  const Rendezvous& rendezvous_;
  std::unique_ptr<FailurePolicy> policy_;
  FlightFiles files_;
  std::atomic<const dist::Mesh*> mesh_{nullptr};
  std::atomic<int64_t> step_{0};
  std::atomic<const char*> stage_{""};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::optional<std::string> learned_;  // by `learn`
  std::string known_failure_;           // used when the store is gone
  std::vector<std::string> known_others_;
  std::thread thread_;
};

}  // namespace titan::core
