#include "http_request.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include <titan/error.h>

namespace titan::post {
namespace {

constexpr double kLongestConnect = 5;  // seconds
constexpr size_t kLargestAnswer = size_t{64} << 20;

struct ListFree {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderLines = std::unique_ptr<curl_slist, ListFree>;

void add(HeaderLines& lines, const std::string& line) {
  curl_slist* longer = curl_slist_append(lines.get(), line.c_str());
  TITAN_CHECK(longer, io, "out of memory");
  static_cast<void>(lines.release());
  lines.reset(longer);
}

size_t take_body(char* data, size_t size, size_t count, void* body) {
  auto& text = *static_cast<std::string*>(body);
  if (text.size() + size * count > kLargestAnswer) return 0;
  text.append(data, size * count);
  return size * count;
}

}  // namespace

Request request_of(const Value& value) {
  const auto text = [&](const char* name) {
    const Value* member = value.find(name);
    return member ? member->as_string() : std::string();
  };
  Request request = {.url = value.at("url").as_string(),
                     .has_body = value.find("body") != nullptr,
                     .body = text("body"),
                     .user = text("user"),
                     .password = text("password"),
                     .ca_file = text("ca_file")};
  if (const Value* headers = value.find("headers"))
    for (const Value& line : headers->as_list()) request.headers.push_back(line.as_string());
  if (const Value* timeout = value.find("timeout_s")) request.timeout_s = timeout->as_number();
  TITAN_CHECK(request.timeout_s > 0, data, "timeout_s must be > 0, got ", request.timeout_s);
  return request;
}

Value value_of(const Answer& answer) {
  return Value::map(
      {{"status", answer.status}, {"body", answer.body}, {"problem", answer.problem}});
}

Sender::Sender() : handle_(curl_easy_init()) {
  TITAN_CHECK(handle_, io, "cannot start libcurl");
}

Sender::~Sender() {
  curl_easy_cleanup(handle_);
}

Answer Sender::send(const Request& request) {
  curl_easy_reset(handle_);
  const auto set = [&](CURLoption option, auto value) {
    const CURLcode code = curl_easy_setopt(handle_, option, value);
    TITAN_CHECK(code == CURLE_OK, io, "libcurl rejected an option: ", curl_easy_strerror(code));
  };
  HeaderLines headers;
  add(headers, "Expect:");  // send the body without waiting for "100 Continue"
  for (const std::string& line : request.headers) add(headers, line);
  char text[CURL_ERROR_SIZE] = "";
  Answer answer;
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_ERRORBUFFER, text);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "titan/" TITAN_VERSION);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  // libcurl would repeat a request on a reused connection that turns out to be closed, although the
  // server may have executed it
  set(CURLOPT_FORBID_REUSE, 1L);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout_s * 1000));
  set(CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(std::min(request.timeout_s, kLongestConnect) * 1000));
  if (request.has_body) {
    add(headers, "Content-Type: application/json");
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.data());
  }
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));  // not for a proxy's CONNECT
  if (!request.user.empty()) {
    set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    set(CURLOPT_USERNAME, request.user.c_str());
    set(CURLOPT_PASSWORD, request.password.c_str());
  }
  if (!request.ca_file.empty()) set(CURLOPT_CAINFO, request.ca_file.c_str());
  set(CURLOPT_WRITEFUNCTION, &take_body);
  set(CURLOPT_WRITEDATA, &answer.body);

  const CURLcode code = curl_easy_perform(handle_);
  long status = 0;
  curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  if (code != CURLE_OK) answer.problem = text[0] ? text : curl_easy_strerror(code);
  return answer;
}

}  // namespace titan::post
