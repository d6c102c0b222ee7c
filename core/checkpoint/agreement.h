// How the ranks of a run agree that a checkpoint is complete. They use the store, so that this
// works on a background thread while the groups are busy with training. Used by the saver.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/runtime/groups/rendezvous.h"

namespace titan::core {

/// Thread: any, one at a time.
class Agreement {
 public:
  explicit Agreement(const Rendezvous& rendezvous);
  ~Agreement();

  /// Waits until every rank has reported on its part: `result`, or `error` when that is not empty.
  /// Without an error rank 0 then calls `conclude`, which may throw, with the results in the order
  /// of ranks. Returns the error, the same text on every rank; empty: success. `number`
  /// distinguishes the agreements of a run. `patience`: how long to wait for the others.
  std::string settle(int64_t number, const std::string& result, const std::string& error,
                     const std::function<void(const std::vector<std::string>&)>& conclude,
                     std::chrono::seconds patience);

  /// Ends a `settle` in progress on another thread, and every later one.
  void abandon() { is_abandoned_ = true; }

 private:
  void wait_for(const std::vector<std::string>& keys, std::chrono::seconds patience);
  std::string collect(const std::string& prefix,
                      const std::function<void(const std::vector<std::string>&)>& conclude,
                      std::chrono::seconds patience);

  int rank_, world_size_;
  std::optional<StoreClient> store_;  // empty for a single process
  std::atomic<bool> is_abandoned_{false};
};

}  // namespace titan::core
