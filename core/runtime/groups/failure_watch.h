// Tells every rank of a failure on one: who failed and why, what the others were doing, and who
// gives no sign of life. What a rank does that hangs meanwhile is its FailurePolicy's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <titan/dist/mesh.h>

#include "core/runtime/groups/failure_policy.h"
#include "core/runtime/groups/flight_recorder.h"
#include "core/runtime/groups/rendezvous.h"

namespace titan::core {

/// Looks at the store twice a second on a thread of its own, and for SIGUSR2, which asks for a
/// flight record. Of a run of one rank it does nothing.
class FailureWatch {
 public:
  /// From the moment that a failure is known to FailurePolicy::overdue.
  static constexpr std::chrono::seconds kPatience{3};
  /// So long the store may take for one answer, once this rank is on its way out.
  static constexpr std::chrono::seconds kAnswerLimit{5};
  /// At least for so long the rank that hosts the store stays after all have answered.
  static constexpr std::chrono::milliseconds kLinger{1200};

  FailureWatch(const Rendezvous& rendezvous, std::unique_ptr<FailurePolicy> policy,
               FlightFiles files = {});
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;

  /// From now on reports speak of these groups' collectives. `mesh` outlives the watch.
  void watch(const dist::Mesh& mesh);
  void set_step(int64_t step) { step_ = step; }
  /// What this rank builds before its first step; `stage` outlives the watch.
  void set_stage(const char* stage) { stage_ = stage; }

  /// Writes what this rank has communicated last; gives the path, or "" where there is nothing to
  /// write or no way to. Any thread. Done before the policy hears that the rank is overdue.
  std::string write_record() const;

  /// [trainer thread, on the way out of a failed rank] Publishes the error, unless another rank was
  /// first, waits up to kPatience for what the others say, and returns lines to add to the error.
  std::vector<std::string> report(const std::string& error);

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
  std::string known_failure_;  // for when the store is gone
  std::vector<std::string> known_others_;
  std::thread thread_;
};

}  // namespace titan::core
