// One HTTP request over libcurl. Used by main.cpp of titan-post.
#pragma once

#include <string>
#include <vector>

#include <titan/value.h>

namespace titan::post {

struct Request {
  std::string url;                   ///< http or https
  bool has_body = false;             ///< POST; without: GET
  std::string body;                  ///< JSON
  std::vector<std::string> headers;  ///< "Name: value"
  std::string user, password;        ///< basic authentication; empty user: none
  std::string ca_file;               ///< certificates to trust; empty: the system's
  double timeout_s = 10;             ///< for all of it
};

struct Answer {
  int status = 0;  ///< 0: nobody answered
  std::string body;
  std::string problem;  ///< why there is no answer, or only a part; empty: it is whole
};

/// Throws a data or internal Error for what is no request.
Request request_of(const Value& value);
Value value_of(const Answer& answer);

/// A connection for each request, which is sent once. Not for several threads at once.
class Sender {
 public:
  Sender();
  ~Sender();
  Sender(const Sender&) = delete;

  /// Never throws for what the network does. No redirect is followed: the answer would not be that
  /// of the server that was asked.
  Answer send(const Request& request);

 private:
  void* handle_;
};

}  // namespace titan::post
