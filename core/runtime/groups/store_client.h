// Calls the store of the ranks with a time limit. LibTorch's client waits for ever if the process
// that hosts the store is stopped. Used by the rendezvous, the failure watch and the collective
// checks of checkpoints.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace titan::core {

/// Each call runs on a thread of its own, which is abandoned if no answer comes: the thread owns
/// everything that it uses. Thread: any, as far as the store allows it.
class StoreClient {
 public:
  /// `limit`: for one answer. `is_interrupted` is polled meanwhile; true ends the call.
  StoreClient(c10::intrusive_ptr<c10d::Store> store, std::chrono::milliseconds limit,
              std::function<bool()> is_interrupted = {});

  /// All throw a distributed Error when no answer came within the limit; exceptions of the store
  /// pass through.
  bool check(const std::vector<std::string>& keys) const;
  std::string get(const std::string& key) const;
  void set(const std::string& key, const std::string& text) const;
  void erase(const std::string& key) const;
  /// Sets the key unless it exists; returns the value that it has then.
  std::string set_first(const std::string& key, const std::string& text) const;
  /// Waits until all keys exist, at most `time` plus the limit. Throws if they do not.
  void wait(const std::vector<std::string>& keys, std::chrono::milliseconds time) const;

 private:
  template <class Call>
  auto ask(std::chrono::milliseconds limit, Call call) const;

  c10::intrusive_ptr<c10d::Store> store_;
  std::chrono::milliseconds limit_;
  std::function<bool()> is_interrupted_;
};

}  // namespace titan::core
