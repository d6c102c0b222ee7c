// The hub's addresses: what is asked where, and what its links mean. Pure. Used by listing.cpp,
// file_transfer.cpp and refusal.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace titan::download {

enum class RepoKind { model, dataset };

/// One repo on one hub.
class RepoUrls {
 public:
  /// `base`: "https://huggingface.co", with or without a path; `name`: "owner/repo" or "repo".
  /// Throws a config Error when either is not of that form.
  RepoUrls(std::string_view base, RepoKind kind, std::string_view name);

  const std::string& base() const { return base_; }
  const std::string& name() const { return name_; }
  RepoKind kind() const { return kind_; }
  /// "repo" of "owner/repo".
  std::string short_name() const;

  /// Where people read about the repo and accept its terms.
  std::string page() const;
  /// Answers with the commit that `revision` (branch, tag, commit) stands for.
  std::string revision(std::string_view revision) const;
  /// The first page of the list of files.
  std::string tree(std::string_view commit) const;
  std::string file(std::string_view commit, std::string_view path) const;

 private:
  std::string base_, name_;
  RepoKind kind_;
};

/// All but letters, digits and -._~ as %XX; of a path the slashes stay.
std::string encode_segment(std::string_view text);
std::string encode_path(std::string_view path);

/// "https://host:port", the port always there; empty when `url` is not one.
std::string origin_of(const std::string& url);

/// The target of rel="next" in the value of a Link header, which was answered to `url`.
std::optional<std::string> next_page(const std::string& url, std::string_view link_header);

}  // namespace titan::download
