// How the ranks of a run agree that a checkpoint is whole: through the store, so that it works on a
// background thread while the groups are busy with training. Used by the saver.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/runtime/groups/rendezvous.h"

namespace titan::core {

/// Thread: one at a time, any.
class Agreement {
 public:
  explicit Agreement(const Rendezvous& rendezvous);
  ~Agreement();

  /// Waits until every rank has said how its part went: `result`, or `error` when that is not
  /// empty. On rank 0 `conclude` then gets the results in the order of ranks, unless there was an
  /// error, and may throw. Returns what went wrong, the same text on every rank; empty: nothing.
  /// `number` tells apart the agreements of a run. `patience`: for the others, from now on.
  std::string settle(int64_t number, const std::string& result, const std::string& error,
                     const std::function<void(const std::vector<std::string>&)>& conclude,
                     std::chrono::seconds patience);

  /// Ends a `settle` under way on another thread, and every later one.
  void abandon() { is_abandoned_ = true; }

 private:
  void wait_for(const std::vector<std::string>& keys, std::chrono::seconds patience);
  std::string collect(const std::string& prefix,
                      const std::function<void(const std::vector<std::string>&)>& conclude,
                      std::chrono::seconds patience);

  int rank_, world_size_;
  std::optional<StoreClient> store_;  // none: a single process
  std::atomic<bool> is_abandoned_{false};
};

}  // namespace titan::core
