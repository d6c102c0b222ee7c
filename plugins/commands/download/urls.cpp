#include "urls.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/program/text.h>

#include "url.h"

namespace titan::download {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

std::string encode(std::string_view text, std::string_view kept) {
  std::string result;
  for (const char c : text) {
    if (is_plain(c) || c == '~' || kept.find(c) != kept.npos) {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += {'%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
  }
  return result;
}

std::string checked_base(std::string_view base) {
  while (base.ends_with('/')) base.remove_suffix(1);
  const std::string text(base);
  const UrlParts url = parts_of(text).value_or(UrlParts());
  // a password must not appear in messages
  TITAN_CHECK(url.user.empty() && url.password.empty(), config,
              "the base URL must not hold a user or password; use --token");
  TITAN_CHECK((url.scheme == "https" || url.scheme == "http") && url.query.empty() &&
                  url.fragment.empty() && text.find_first_of("?#") == text.npos,
              config, "the base URL must be like https://huggingface.co, got '", text, "'");
  return text;
}

std::string checked_name(std::string_view name) {
  const auto is_word = [](std::string_view word) {
    return !word.empty() && word != "." && word != ".." &&
           std::all_of(word.begin(), word.end(), is_plain);
  };
  const size_t slash = name.find('/');
  TITAN_CHECK(slash == name.npos
                  ? is_word(name)
                  : is_word(name.substr(0, slash)) && is_word(name.substr(slash + 1)),
              config, "a repo is named like meta-llama/Llama-3.1-8B, got '", name, "'");
  return std::string(name);
}

bool says_next(std::string_view parameters) {
  while (!parameters.empty()) {
    const size_t end = std::min(parameters.find(';'), parameters.size());
    const std::string_view one = trimmed(parameters.substr(0, end));
    if (one == "rel=\"next\"" || one == "rel=next") return true;
    parameters.remove_prefix(std::min(end + 1, parameters.size()));
  }
  return false;
}

}  // namespace

RepoUrls::RepoUrls(std::string_view base, RepoKind kind, std::string_view name)
    : base_(checked_base(base)), name_(checked_name(name)), kind_(kind) {}

std::string RepoUrls::short_name() const {
  return name_.substr(name_.find('/') + 1);
}

std::string RepoUrls::page() const {
  return base_ + (kind_ == RepoKind::dataset ? "/datasets/" : "/") + name_;
}

std::string RepoUrls::revision(std::string_view revision) const {
  return base_ + (kind_ == RepoKind::dataset ? "/api/datasets/" : "/api/models/") + name_ +
         "/revision/" + encode_segment(revision);
}

std::string RepoUrls::tree(std::string_view commit) const {
  return base_ + (kind_ == RepoKind::dataset ? "/api/datasets/" : "/api/models/") + name_ +
         "/tree/" + encode_segment(commit) + "?recursive=true";
}

std::string RepoUrls::file(std::string_view commit, std::string_view path) const {
  return page() + "/resolve/" + encode_segment(commit) + "/" + encode_path(path);
}

std::string encode_segment(std::string_view text) {
  return encode(text, "");
}
std::string encode_path(std::string_view path) {
  return encode(path, "/");
}

std::optional<std::string> next_page(const std::string& url, std::string_view link_header) {
  // <target>; rel="next", <target>; rel="last": a target may contain commas
  while (true) {
    const size_t open = link_header.find('<');
    const size_t close = link_header.find('>', open);
    if (open == link_header.npos || close == link_header.npos) return std::nullopt;
    const std::string target(link_header.substr(open + 1, close - open - 1));
    link_header.remove_prefix(close + 1);
    if (!says_next(link_header.substr(0, link_header.find(',')))) continue;
    const std::optional<std::string> next = resolved_url(url, target);
    TITAN_CHECK(next, data, url, " gives an invalid URL of the next page: '", target, "'");
    return next;
  }
}

}  // namespace titan::download
