// One HTTP GET at a time over libcurl: redirects, the token, where bytes go. Used by listing.cpp
// and file_transfer.cpp, which judge what is answered.
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
  std::string token;         ///< sent to `token_origin` and nowhere else; empty: to nobody
  std::string token_origin;  ///< as origin_of gives it
  std::string ca_file;       ///< certificates to trust; empty: the system's
  int stall_timeout_s = 30;
};

struct HttpRequest {
  std::string url;
  int64_t from = 0;      ///< first byte wanted
  std::string if_range;  ///< strong ETag of what is there already; empty: none
};

/// What the last server of a chain of redirects said, and how the transfer ended.
struct HttpAnswer {
  int status = 0;                              ///< 0: nobody answered
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string problem;                         ///< why it ended early; empty: it did not
  bool is_worth_a_retry = false;               ///< of `problem` or `status`: it may pass
  std::optional<double> retry_after_s;
  std::string redirected_to;  ///< host, when another than the one asked
  bool token_was_sent = false;

  /// Empty when absent.
  std::string header(const std::string& name) const;
  bool has_body() const { return status == 200 || status == 206; }
};

/// Takes the body of an answer with status 200 or 206.
class BodySink {
 public:
  virtual ~BodySink() = default;
  /// Once, before the first byte. False ends the transfer, without a problem.
  virtual bool begin(const HttpAnswer& answer) = 0;
  virtual void write(std::string_view bytes) = 0;
};

/// Keeps its connection between requests that succeed. Not for several threads at once.
class HttpClient {
 public:
  HttpClient(const HttpSettings& settings, const StopRequest& stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;

  /// Never throws for what the network does; passes on what `sink` throws, and throws Stopped.
  HttpAnswer get(const HttpRequest& request, BodySink& sink);

 private:
  struct Transfer;

  void renew_after_failure();

  const HttpSettings& settings_;
  const StopRequest& stop_;
  void* handle_;
  bool has_failed_ = false;  // the last request
};

}  // namespace titan::download
