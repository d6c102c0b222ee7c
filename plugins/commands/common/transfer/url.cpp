#include "url.h"

#include <curl/curl.h>

#include <memory>

#include <titan/program/text.h>

namespace titan::download {
namespace {

using ParsedUrl = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

ParsedUrl parse(const std::string& url) {
  ParsedUrl parsed(curl_url(), curl_url_cleanup);
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    parsed.reset();
  return parsed;
}

std::string part_of(const ParsedUrl& url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return {};
  std::string result(text);
  curl_free(text);
  return result;
}

}  // namespace

std::optional<UrlParts> parts_of(const std::string& url) {
  const ParsedUrl parsed = parse(url);
  if (!parsed) return std::nullopt;
  return UrlParts{.scheme = part_of(parsed, CURLUPART_SCHEME),
                  .user = part_of(parsed, CURLUPART_USER),
                  .password = part_of(parsed, CURLUPART_PASSWORD),
                  .host = lower_case(std::string_view(part_of(parsed, CURLUPART_HOST))),
                  .port = part_of(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT),
                  .query = part_of(parsed, CURLUPART_QUERY),
                  .fragment = part_of(parsed, CURLUPART_FRAGMENT)};
}

std::string origin_of(const std::string& url) {
  const std::optional<UrlParts> parts = parts_of(url);
  if (!parts || parts->host.empty()) return {};
  return parts->scheme + "://" + parts->host + ":" + parts->port;
}

std::optional<std::string> resolved_url(const std::string& url, const std::string& target) {
  const ParsedUrl parsed = parse(url);
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, target.c_str(), 0) != CURLUE_OK)
    return std::nullopt;
  return part_of(parsed, CURLUPART_URL);
}

}  // namespace titan::download
