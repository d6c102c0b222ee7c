// The hub's URLs: endpoints, and links to the next page. Pure. Used by listing.cpp,
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
  /// Throws a config Error when either does not have this form.
  RepoUrls(std::string_view base, RepoKind kind, std::string_view name);

  const std::string& base() const { return base_; }
  const std::string& name() const { return name_; }
  RepoKind kind() const { return kind_; }
  /// "repo" of "owner/repo".
  std::string short_name() const;

  /// The page of the repo for people, with its terms.
  std::string page() const;
  /// The server answers with the commit of `revision` (branch, tag, commit).
  std::string revision(std::string_view revision) const;
  /// The first page of the list of files.
  std::string tree(std::string_view commit) const;
  std::string file(std::string_view commit, std::string_view path) const;

 private:
  std::string base_, name_;
  RepoKind kind_;
};

/// Percent-encodes all but letters, digits and -._~; encode_path keeps slashes.
std::string encode_segment(std::string_view text);
std::string encode_path(std::string_view path);

/// The target of rel="next" in the Link header of the answer for `url`.
std::optional<std::string> next_page(const std::string& url, std::string_view link_header);

}  // namespace titan::download
