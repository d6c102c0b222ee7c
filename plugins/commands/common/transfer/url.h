// Parts of URLs. Pure. Used by http.cpp and by commands that build URLs.
#pragma once

#include <optional>
#include <string>

namespace titan::download {

struct UrlParts {
  std::string scheme, user, password, host, port, query, fragment;
};

/// Absent when `url` is not a URL. `port` is never empty; `host` is in lower case.
std::optional<UrlParts> parts_of(const std::string& url);

/// "https://host:port", always with the port; empty when `url` is not a URL.
std::string origin_of(const std::string& url);

/// `target`, an address in the document `url`, as an absolute URL. Absent when either is invalid.
std::optional<std::string> resolved_url(const std::string& url, const std::string& target);

}  // namespace titan::download
