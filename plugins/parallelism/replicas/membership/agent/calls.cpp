#include "calls.h"

#include <curl/curl.h>

#include <charconv>
#include <utility>

#include <titan/error.h>
#include <titan/program/text.h>

#include "../wire.h"

namespace titan::replicas {
namespace {

constexpr size_t kLargestAnswer = size_t{64} << 20;
constexpr long kConnectTimeoutMs = 5000;
// finds out that the lighthouse's host is gone while a request is open
constexpr long kKeepAliveAfter = 10, kKeepAliveEvery = 5;

size_t take_body(char* data, size_t size, size_t count, void* body) {
  auto& text = *static_cast<std::string*>(body);
  if (text.size() + size * count > kLargestAnswer) return 0;
  text.append(data, size * count);
  return size * count;
}

}  // namespace

struct CurlCalls::Call {
  Call(void* multi, std::string url)
      : multi_(multi), handle_(curl_easy_init()), url_(std::move(url)) {
    TITAN_CHECK(handle_, io, "cannot start libcurl");
    for (const char* line : {"content-type: application/grpc", "te: trailers", "Expect:"}) {
      curl_slist* longer = curl_slist_append(headers_, line);
      TITAN_CHECK(longer, io, "out of memory");
      headers_ = longer;
    }
  }
  ~Call() {
    stop();
    curl_easy_cleanup(handle_);
    curl_slist_free_all(headers_);
  }
  Call(const Call&) = delete;

  template <class T>
  void set(CURLoption option, T value) {
    const CURLcode code = curl_easy_setopt(handle_, option, value);
    TITAN_CHECK(code == CURLE_OK, io, "libcurl rejected an option: ", curl_easy_strerror(code));
  }

  void start(std::string frame, long timeout_ms) {
    stop();
    frame_ = std::move(frame);
    answer_.clear();
    status_.reset();
    message_.clear();
    end_.reset();
    error_[0] = '\0';
    curl_easy_reset(handle_);
    set(CURLOPT_URL, url_.c_str());
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE));
    set(CURLOPT_PROXY, "");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "titan/" TITAN_VERSION);
    set(CURLOPT_HTTPHEADER, headers_);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(frame_.size()));
    set(CURLOPT_POSTFIELDS, frame_.data());
    set(CURLOPT_ERRORBUFFER, static_cast<char*>(error_));
    set(CURLOPT_WRITEFUNCTION, &take_body);
    set(CURLOPT_WRITEDATA, &answer_);
    set(CURLOPT_HEADERFUNCTION, &take_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    set(CURLOPT_TIMEOUT_MS, timeout_ms);
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_TCP_KEEPIDLE, kKeepAliveAfter);
    set(CURLOPT_TCP_KEEPINTVL, kKeepAliveEvery);
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_FORBID_REUSE, 1L);
    const CURLMcode code = curl_multi_add_handle(multi_, handle_);
    TITAN_CHECK(code == CURLM_OK, io, "libcurl rejected a call: ", curl_multi_strerror(code));
    is_started_ = true;
  }

  void stop() {
    if (std::exchange(is_started_, false)) curl_multi_remove_handle(multi_, handle_);
  }

  /// Header lines and, after the body, trailers.
  static size_t take_header(char* data, size_t size, size_t count, void* call) {
    auto& self = *static_cast<Call*>(call);
    const std::string_view line(data, size * count);
    const size_t colon = line.find(':');
    if (colon != line.npos) {
      const std::string_view value = trimmed(line.substr(colon + 1));
      const std::string_view name = line.substr(0, colon);
      int status = 0;
      if (equal_ignoring_case(name, "grpc-message")) self.message_ = percent_decoded(value);
      if (equal_ignoring_case(name, "grpc-status") &&
          std::from_chars(value.data(), value.data() + value.size(), status).ec == std::errc())
        self.status_ = status;
    }
    return size * count;
  }

  void finish(CURLcode code) {
    stop();
    CallEnd end;
    end.problem = error_[0] ? error_ : curl_easy_strerror(code);
    curl_off_t connected = 0;
    curl_easy_getinfo(handle_, CURLINFO_CONNECT_TIME_T, &connected);
    long http = 0;
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &http);
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
        (code == CURLE_OPERATION_TIMEDOUT && connected == 0)) {
      end.kind = CallEnd::Kind::not_sent;
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
      end.kind = CallEnd::Kind::timed_out;
    } else if (code != CURLE_OK) {
      end.kind = CallEnd::Kind::lost;
    } else if (status_) {
      end.status = *status_;
      end.problem =
          detail::concat("gRPC status ", *status_, message_.empty() ? "" : ", ", message_);
      end.body = std::move(answer_);
    } else {
      end.status = -1;
      end.problem = detail::concat("HTTP status ", http, " without a gRPC status");
    }
    end_ = std::move(end);
  }

  void* multi_;
  CURL* handle_;
  std::string url_, frame_, answer_, message_;
  curl_slist* headers_ = nullptr;
  std::optional<int> status_;
  std::optional<CallEnd> end_;
  char error_[CURL_ERROR_SIZE] = "";
  bool is_started_ = false;
};

CurlCalls::CurlCalls(std::string lighthouse, std::chrono::milliseconds heartbeat_timeout)
    : heartbeat_timeout_(heartbeat_timeout), multi_(curl_multi_init()) {
  TITAN_CHECK(multi_, io, "cannot start libcurl");
  heartbeat_ = std::make_unique<Call>(multi_, lighthouse + kHeartbeatPath);
  quorum_ = std::make_unique<Call>(multi_, lighthouse + kQuorumPath);
}

CurlCalls::~CurlCalls() {
  heartbeat_.reset();
  quorum_.reset();
  curl_multi_cleanup(multi_);
}

void CurlCalls::send_heartbeat(std::string frame) {
  heartbeat_->start(std::move(frame), static_cast<long>(heartbeat_timeout_.count()));
}

void CurlCalls::send_quorum(std::string frame) {
  quorum_->start(std::move(frame), 0);
}

void CurlCalls::drop_quorum() {
  quorum_->stop();
}

void CurlCalls::collect() {
  int left = 0;
  curl_multi_perform(multi_, &left);
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    (message->easy_handle == quorum_->handle_ ? *quorum_ : *heartbeat_).finish(code);
  }
}

bool CurlCalls::wait(int descriptor, std::chrono::milliseconds limit) {
  collect();
  curl_waitfd input = {.fd = descriptor, .events = CURL_WAIT_POLLIN, .revents = 0};
  if (!heartbeat_->end_ && !quorum_->end_)
    curl_multi_poll(multi_, &input, 1, static_cast<int>(limit.count()), nullptr);
  collect();
  return input.revents != 0;
}

std::optional<CallEnd> CurlCalls::take_heartbeat_end() {
  return std::exchange(heartbeat_->end_, std::nullopt);
}

std::optional<CallEnd> CurlCalls::take_quorum_end() {
  return std::exchange(quorum_->end_, std::nullopt);
}

}  // namespace titan::replicas
