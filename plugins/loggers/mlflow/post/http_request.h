// One HTTP request over libcurl. Used by main.cpp of titan-post.
#pragma once

#include <string>
#include <vector>

#include <titan/value.h>

namespace titan::post {

struct Request {
  std::string url;                   ///< http or https
  bool has_body = false;             ///< POST; else GET
  std::string body;                  ///< JSON
  std::vector<std::string> headers;  ///< "Name: value"
  std::string user, password;        ///< basic authentication; empty user: none
  std::string ca_file;               ///< certificates to trust; empty: the system's
  double timeout_s = 10;             ///< for the whole request
};

struct Answer {
  int status = 0;  ///< 0: no answer
  std::string body;
  std::string problem;  ///< why the answer is missing or incomplete; empty: it is complete
};

/// Throws a data or internal Error for an invalid request.
Request request_of(const Value& value);
Value value_of(const Answer& answer);

/// Opens a connection for each request and sends it once. Not thread-safe.
class Sender {
 public:
  Sender();
  ~Sender();
  Sender(const Sender&) = delete;

  /// Reports network failures in the answer. Follows no redirects: the answer must come from the
  /// requested server.
  Answer send(const Request& request);

 private:
  void* handle_;
};

}  // namespace titan::post
