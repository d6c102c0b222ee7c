#include "http.h"

#include <curl/curl.h>

#include <algorithm>
#include <exception>
#include <utility>

#include <titan/error.h>
#include <titan/program/text.h>

#include "url.h"

namespace titan::download {
namespace {

constexpr long kMaxRedirects = 10;
constexpr long kConnectTimeoutSeconds = 20;
constexpr long kStalledBelowBytesPerSecond = 256;
constexpr long kBufferBytes = 512 << 10;

bool may_pass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_WEIRD_SERVER_REPLY:
      return true;
    default:
      return false;
  }
}

bool may_pass(int status) {
  return status == 408 || status == 429 || status >= 500;
}

class HeaderList {
 public:
  ~HeaderList() { curl_slist_free_all(list_); }
  void add(const std::string& line) {
    curl_slist* longer = curl_slist_append(list_, line.c_str());
    TITAN_CHECK(longer, io, "out of memory");
    list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

}  // namespace

struct HttpClient::Transfer {
  BodySink& sink;
  const StopRequest& stop;
  HttpAnswer answer = {};
  bool has_begun = false, is_unwanted = false;
  std::exception_ptr thrown = nullptr;

  /// Runs `action` and stores its exception, which must not pass through libcurl.
  template <class Action>
  bool guarded(const Action& action) {
    try {
      return action();
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }

  bool begin() {
    has_begun = true;
    is_unwanted = !sink.begin(answer);
    return !is_unwanted;
  }

  void take_header(std::string_view line) {
    // each server in a chain of redirects starts with new headers
    if (line.starts_with("HTTP/")) {
      answer.headers.clear();
      const size_t space = line.find(' ');
      answer.status = space == line.npos ? 0 : std::atoi(std::string(line.substr(space)).c_str());
      return;
    }
    const size_t colon = line.find(':');
    if (colon != line.npos)
      answer.headers[lower_case(trimmed(line.substr(0, colon)))] = trimmed(line.substr(colon + 1));
  }

  static size_t on_header(char* data, size_t size, size_t count, void* self) {
    auto* transfer = static_cast<Transfer*>(self);
    const std::string_view line(data, size * count);
    return transfer->guarded([&] { return transfer->take_header(line), true; }) ? line.size() : 0;
  }

  static size_t on_body(char* data, size_t size, size_t count, void* self) {
    auto* transfer = static_cast<Transfer*>(self);
    const std::string_view bytes(data, size * count);
    if (!transfer->answer.has_body()) return bytes.size();
    return transfer->guarded([&] {
      if (!transfer->has_begun && !transfer->begin()) return false;
      transfer->sink.write(bytes);
      return true;
    })
               ? bytes.size()
               : 0;
  }

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Transfer*>(self)->stop.is_asked() ? 1 : 0;
  }
};

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

HttpClient::HttpClient(const HttpSettings& settings, const StopRequest& stop)
    : settings_(settings), stop_(stop), handle_(curl_easy_init()) {
  TITAN_CHECK(handle_, io, "cannot start libcurl");
}

HttpClient::~HttpClient() {
  curl_easy_cleanup(handle_);
}

/// A request that ends early, for example by a failed name lookup, can leave its buffer in the
/// handle. The handle then rejects CURLOPT_BUFFERSIZE, so a new one replaces it.
void HttpClient::renew_after_failure() {
  if (!std::exchange(has_failed_, false)) return;
  void* fresh = curl_easy_init();
  TITAN_CHECK(fresh, io, "cannot start libcurl");
  curl_easy_cleanup(handle_);
  handle_ = fresh;
}

HttpAnswer HttpClient::get(const HttpRequest& request, BodySink& sink) {
  if (stop_.is_asked()) throw Stopped();
  Transfer transfer = {.sink = sink, .stop = stop_};
  const std::string origin = origin_of(request.url);
  HeaderList headers;
  // uncompressed, so that sizes and ranges match the stored file
  headers.add("Accept-Encoding: identity");
  if (!request.if_range.empty()) headers.add("If-Range: " + request.if_range);
  transfer.answer.token_was_sent = !settings_.token.empty() && origin == settings_.token_origin;
  // libcurl drops this header when a redirect leads to another scheme, host or port
  if (transfer.answer.token_was_sent) headers.add("Authorization: Bearer " + settings_.token);

  char text[CURL_ERROR_SIZE] = "";
  renew_after_failure();
  curl_easy_reset(handle_);
  const auto set = [&](CURLoption option, auto value) {
    const CURLcode code = curl_easy_setopt(handle_, option, value);
    TITAN_CHECK(code == CURLE_OK, io, "libcurl rejected an option: ", curl_easy_strerror(code));
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_ERRORBUFFER, text);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "titan/" TITAN_VERSION);
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_HEADEROPT,
      static_cast<long>(CURLHEADER_SEPARATE));  // none of them for a proxy's CONNECT
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, kMaxRedirects);
  set(CURLOPT_UNRESTRICTED_AUTH, 0L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  // a request over TLS must not be redirected to an unencrypted connection
  set(CURLOPT_REDIR_PROTOCOLS_STR, origin.starts_with("https:") ? "https" : "http,https");
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_CONNECTTIMEOUT, kConnectTimeoutSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, kStalledBelowBytesPerSecond);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings_.stall_timeout_s));
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  const std::string range = std::to_string(request.from) + "-";
  if (request.from > 0) set(CURLOPT_RANGE, range.c_str());
  if (!settings_.ca_file.empty()) set(CURLOPT_CAINFO, settings_.ca_file.c_str());
  set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
  set(CURLOPT_XFERINFODATA, &transfer);

  const CURLcode code = curl_easy_perform(handle_);
  has_failed_ = code != CURLE_OK;
  HttpAnswer& answer = transfer.answer;
  if (code == CURLE_OK && answer.has_body() && !transfer.has_begun)
    transfer.guarded([&] { return transfer.begin(); });
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (stop_.is_asked()) throw Stopped();

  char* last_url = nullptr;
  curl_easy_getinfo(handle_, CURLINFO_EFFECTIVE_URL, &last_url);
  const std::string last_origin = last_url ? origin_of(last_url) : origin;
  if (last_origin != origin) answer.redirected_to = last_origin;
  curl_off_t wait_s = 0;
  if (curl_easy_getinfo(handle_, CURLINFO_RETRY_AFTER, &wait_s) == CURLE_OK && wait_s > 0)
    answer.retry_after_s = static_cast<double>(wait_s);
  if (code != CURLE_OK && !transfer.is_unwanted) {
    answer.problem = text[0] ? text : curl_easy_strerror(code);
    answer.is_worth_a_retry = may_pass(code);
  } else if (!transfer.is_unwanted) {
    answer.is_worth_a_retry = may_pass(answer.status);
  }
  return std::move(transfer.answer);
}

}  // namespace titan::download
