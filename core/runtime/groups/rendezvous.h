// The rendezvous of a run's ranks, before they can communicate: a key-value store that one of them
// (or the launcher's agent) hosts.
#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include "core/runtime/groups/interruptible_store.h"
#include "core/runtime/groups/store_client.h"
#include "core/runtime/launch_env.h"

namespace c10d {
class Store;
}

namespace titan::core {

/// Names and values, in order, that must be equal on all ranks of a run: "training.steps" -> "20",
/// "plugin fsdp" -> its version and the hash of its file.
using RunIdentity = std::vector<std::pair<std::string, std::string>>;

/// Thread: one.
class Rendezvous {
 public:
  /// Connects to the store; rank 0 hosts it unless an agent does. Throws a distributed Error when
  /// the port is taken or the store does not answer within `timeout`. A single process needs no
  /// store. `is_interrupted`: ends the waits of this rank at the store, also those of transports
  /// that connect groups; empty: they last until the timeout.
  Rendezvous(const LaunchEnv& launch, std::chrono::milliseconds timeout,
             IsInterrupted is_interrupted = {});
  /// Rank 0 waits until the others have left too, so that none of them finds the store gone.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;

  bool is_alone() const { return !store_; }
  const LaunchEnv& launch() const { return launch_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  /// All ranks are on this machine. Known after `agree`.
  bool is_one_host() const { return launch_.world_size == launch_.local_world_size; }
  c10d::Store& store() const { return *store_; }
  /// A client over the connection of `store`.
  StoreClient client(std::chrono::milliseconds limit) const { return {store_, limit}; }
  /// A new connection, for another thread.
  c10::intrusive_ptr<c10d::Store> another_connection() const;

  /// Waits for all ranks and compares their identity. Throws a config Error that lists every
  /// difference of a rank from rank 0, or a distributed Error that names the ranks that did not
  /// arrive in time.
  void agree(const RunIdentity& identity);

  /// Rank 0's value of `name` on every rank.
  std::string from_rank_zero(const std::string& name, const std::string& value) const;

  /// Every rank's value of `name`, in the order of ranks, on every rank.
  std::vector<std::string> from_all(const std::string& name, const std::string& value) const;

  /// The run has failed: the destructor does not wait for the other ranks.
  void abandon() { is_abandoned_ = true; }

 private:
  StoreClient patient_client() const;
  std::string fetch(const std::string& key) const;
  void publish(const std::string& key, const std::string& text) const;
  [[noreturn]] void fail_waiting(const std::exception& error) const;
  std::string wait_for_all(const std::string& prefix) const;

  LaunchEnv launch_;
  std::chrono::milliseconds timeout_;
  IsInterrupted is_interrupted_;           // empty: never
  c10::intrusive_ptr<c10d::Store> store_;  // null: a single process
  bool is_abandoned_ = false;
};

}  // namespace titan::core
