// One HTTP GET at a time over libcurl, with redirects, the token, and a sink for the body. Used by
// listing.cpp and file_transfer.cpp, which interpret the answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "stop_request.h"

namespace titan::download {

struct HttpSettings {
  std::string token;         ///< sent to `token_origin` only; empty: never sent
  std::string token_origin;  ///< as origin_of gives it
  std::string ca_file;       ///< certificates to trust; empty: the system's
  int stall_timeout_s = 30;
};

struct HttpRequest {
  std::string url;
  int64_t from = 0;      ///< first byte requested
  std::string if_range;  ///< strong ETag of the bytes on disk; empty: none
};

/// The answer of the last server in a chain of redirects, and the end of the transfer.
struct HttpAnswer {
  int status = 0;                              ///< 0: no answer
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string problem;                         ///< why it ended early; empty: it did not
  bool is_worth_a_retry = false;               ///< `problem` or `status` may be temporary
  std::optional<double> retry_after_s;
  std::string redirected_to;  ///< host of the redirect, when it differs from the requested one
  bool token_was_sent = false;

  /// Empty when absent.
  std::string header(const std::string& name) const;
  bool has_body() const { return status == 200 || status == 206; }
};

/// Receives the body of an answer with status 200 or 206.
class BodySink {
 public:
  virtual ~BodySink() = default;
  /// Once, before the first byte. False ends the transfer without a problem.
  virtual bool begin(const HttpAnswer& answer) = 0;
  virtual void write(std::string_view bytes) = 0;
};

/// Reuses its connection after successful requests. Not thread-safe.
class HttpClient {
 public:
  HttpClient(const HttpSettings& settings, const StopRequest& stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;

  /// Reports network failures in the answer. Throws exceptions of `sink`, and Stopped.
  HttpAnswer get(const HttpRequest& request, BodySink& sink);

 private:
  struct Transfer;

  void renew_after_failure();

  const HttpSettings& settings_;
  const StopRequest& stop_;
  void* handle_;
  bool has_failed_ = false;  // the last request failed
};

}  // namespace titan::download
