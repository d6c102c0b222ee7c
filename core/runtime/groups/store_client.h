// Asks the store of the ranks and waits for its answer for a limited time. LibTorch's client waits
// for ever where the process that hosts the store is stopped. Used by the rendezvous, the failure
// watch and the agreements of checkpoints.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace titan::core {

/// Each call runs on a thread of its own, which is left behind where no answer comes: it owns all
/// that it uses. Thread: any, as far as the store allows it.
class StoreClient {
 public:
  /// `limit`: for one answer. `is_interrupted` is asked meanwhile; true ends the call.
  StoreClient(c10::intrusive_ptr<c10d::Store> store, std::chrono::milliseconds limit,
              std::function<bool()> is_interrupted = {});

  /// All throw a distributed Error when no answer came within the limit, and what the store throws.
  bool check(const std::vector<std::string>& keys) const;
  std::string get(const std::string& key) const;
  void set(const std::string& key, const std::string& text) const;
  void erase(const std::string& key) const;
  /// Sets the key unless it is there; gives what is there then.
  std::string set_first(const std::string& key, const std::string& text) const;
  /// Until all keys are there, for at most `time` and the limit. Throws when they are not.
  void wait(const std::vector<std::string>& keys, std::chrono::milliseconds time) const;

 private:
  template <class Call>
  auto ask(std::chrono::milliseconds limit, Call call) const;

  c10::intrusive_ptr<c10d::Store> store_;
  std::chrono::milliseconds limit_;
  std::function<bool()> is_interrupted_;
};

}  // namespace titan::core
