// When a request is tried again, and how long after. Used by listing.cpp and file_transfer.cpp.
#pragma once

#include <functional>
#include <string>

#include "http.h"
#include "stop_request.h"

namespace titan::download {

struct RetryPolicy {
  int retries = 5;    ///< without any progress between them
  double wait_s = 1;  ///< before the first; doubled each time, up to a minute
};

/// How one request is repeated.
class Retries {
 public:
  using Say = std::function<void(const std::string&)>;

  /// `say` gets a line for each retry.
  Retries(const RetryPolicy& policy, const StopRequest& stop, Say say)
      : policy_(policy), stop_(stop), say_(std::move(say)) {}

  /// Bytes came: count from the start again.
  void reset() { failures_ = 0; }
  /// Waits before the next try, as long as the server asks for if it does. Throws an io Error when
  /// there were enough or the server asks for more than ten minutes, and Stopped.
  void wait(const std::string& url, const HttpAnswer& answer);

 private:
  RetryPolicy policy_;
  const StopRequest& stop_;
  Say say_;
  int failures_ = 0;
};

/// "status 503 Service Unavailable from HOST", or what cut the transfer.
std::string reason_of(const HttpAnswer& answer);

}  // namespace titan::download
