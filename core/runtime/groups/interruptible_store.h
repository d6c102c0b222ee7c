// Lets another thread end the waits of a rank at the store, so that the rank can take part in a new
// start of the ranks. Used by the rendezvous.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace titan::core {

/// Polled by waits; true ends them.
using IsInterrupted = std::function<bool()>;

/// A wait polls the store instead of sleeping there. Waits and checks throw a distributed Error
/// when they are interrupted. Used by all that waits: the rendezvous, transports that connect
/// groups, collective checks of checkpoints.
class InterruptibleStore final : public c10d::PrefixStore {
 public:
  /// Connects to the same store once more, and throws after the timeout or when it is interrupted.
  /// TCPStore::clone() would try for minutes.
  using Connect = std::function<c10::intrusive_ptr<c10d::Store>(std::chrono::milliseconds timeout)>;

  /// `store` is never asked to wait. `timeout`: of waits here.
  InterruptibleStore(std::string prefix, c10::intrusive_ptr<c10d::Store> store,
                     std::chrono::milliseconds timeout, IsInterrupted is_interrupted,
                     Connect connect);

  c10::intrusive_ptr<c10d::Store> clone() override;
  bool check(const std::vector<std::string>& keys) override;
  std::vector<uint8_t> get(const std::string& key) override;
  std::vector<std::vector<uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  const std::chrono::milliseconds& getTimeout() const noexcept override { return timeout_; }
  void setTimeout(const std::chrono::milliseconds& timeout) override { timeout_ = timeout; }

 private:
  IsInterrupted is_interrupted_;
  Connect connect_;
};

/// Connects to the store at the address, a number such as 127.0.0.1, or hosts it. Throws as
/// TCPStore does after options.timeout, and a distributed Error when it is interrupted.
c10::intrusive_ptr<c10d::Store> connect_interruptibly(const std::string& prefix,
                                                      const std::string& address,
                                                      const c10d::TCPStoreOptions& options,
                                                      const IsInterrupted& is_interrupted);

}  // namespace titan::core
