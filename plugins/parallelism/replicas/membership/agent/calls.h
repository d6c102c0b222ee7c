// Calls of gRPC over libcurl: one POST each, HTTP/2 without TLS. Used by main.cpp of titan-replica.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "../agent_rules.h"

namespace titan::replicas {

/// Not thread-safe. Each call has its own connection. libcurl would repeat a request on a
/// connection that it uses again, if the connection turns out to be closed; and libcurl 7.88 fails
/// at the second HTTP/2 request on a connection without TLS.
class CurlCalls final : public Calls {
 public:
  /// A heartbeat fails after `heartbeat_timeout`. Throws an io Error if libcurl cannot start.
  CurlCalls(std::string lighthouse, std::chrono::milliseconds heartbeat_timeout);
  ~CurlCalls() override;
  CurlCalls(const CurlCalls&) = delete;

  void send_heartbeat(std::string frame) override;
  void send_quorum(std::string frame) override;
  void drop_quorum() override;

  /// Sends and receives until `descriptor` is readable, a call has ended or `limit` has passed.
  /// Returns whether `descriptor` is readable.
  bool wait(int descriptor, std::chrono::milliseconds limit);
  /// The end of the call, once.
  std::optional<CallEnd> take_heartbeat_end();
  std::optional<CallEnd> take_quorum_end();

 private:
  struct Call;
  void collect();

  std::chrono::milliseconds heartbeat_timeout_;
  void* multi_;
  std::unique_ptr<Call> heartbeat_, quorum_;
};

}  // namespace titan::replicas
