// Decides whether and when a failed request is repeated. Used by listing.cpp and file_transfer.cpp.
#pragma once

#include <functional>
#include <string>

#include "http.h"
#include "stop_request.h"

namespace titan::download {

struct RetryPolicy {
  int retries = 5;          ///< without progress in between
  double wait_s = 1;        ///< before the first retry; doubled each time, up to a minute
  bool keeps_bytes = true;  ///< what has arrived is kept for the next run; for messages
};

/// The retries of one request.
class Retries {
 public:
  using Say = std::function<void(const std::string&)>;

  /// `say` gets a line for each retry.
  Retries(const RetryPolicy& policy, const StopRequest& stop, Say say)
      : policy_(policy), stop_(stop), say_(std::move(say)) {}

  /// Bytes arrived: the count of retries starts again at 0.
  void reset() { failures_ = 0; }
  /// Waits before the next try, at least as long as the server requests. Throws an io Error after
  /// the last retry or when the server requests more than ten minutes, and Stopped.
  void wait(const std::string& url, const HttpAnswer& answer);

 private:
  RetryPolicy policy_;
  const StopRequest& stop_;
  Say say_;
  int failures_ = 0;
};

/// "status 503 Service Unavailable from HOST", or the reason why the transfer ended.
std::string reason_of(const HttpAnswer& answer);

}  // namespace titan::download
