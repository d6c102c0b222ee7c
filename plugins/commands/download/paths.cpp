#include "paths.h"

#include <algorithm>
#include <system_error>

#include <titan/error.h>
#include <titan/shown_text.h>

namespace titan::download {
namespace {

namespace fs = std::filesystem;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

/// Why a part of a path is rejected; null when it is not. Git itself allows no ".git", so a hub
/// that lists one may be attacking a repository around the output folder.
const char* fault_of(std::string_view part) {
  if (part.empty()) return "an empty part";
  if (part == "." || part == "..") return "a part '.' or '..'";
  const bool is_git = part.size() == 4 && part[0] == '.' && (part[1] | 32) == 'g' &&
                      (part[2] | 32) == 'i' && (part[3] | 32) == 't';
  return is_git ? "a part '.git'" : nullptr;
}

bool is_below(const fs::path& path, const fs::path& root) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

}  // namespace

void require_harmless(std::string_view path) {
  const auto refuse = [&](const char* what) {
    fail(ErrorKind::data, "the hub lists a file '", printable(path), "', rejected because of ",
         what, "; leave it out by --exclude only if you trust the rest of this repo");
  };
  if (path.empty()) refuse("its empty name");
  if (path.front() == '/') refuse("the leading slash");
  if (path.find('\\') != path.npos) refuse("a backslash");
  if (std::any_of(path.begin(), path.end(), is_control)) refuse("a control character");
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    if (const char* fault = fault_of(path.substr(start, end - start))) refuse(fault);
    start = end + 1;
  }
}

fs::path place_below(const fs::path& root, std::string_view path) {
  const fs::path place = root / fs::path(path);
  const fs::path folder = place.parent_path();
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  TITAN_CHECK(!error, io, "cannot use the output folder ", root.string(), ": ", error.message());
  // checked before making folders, and again afterwards
  const auto require_inside = [&] {
    const fs::path real = fs::weakly_canonical(folder, error);
    TITAN_CHECK(!error, io, "cannot use the folder ", folder.string(), ": ", error.message());
    TITAN_CHECK(is_below(real, real_root), data, "a symbolic link leads from ", folder.string(),
                " out of the output folder to ", real.string(),
                "; remove the link or choose another --output");
  };
  require_inside();
  fs::create_directories(folder, error);
  TITAN_CHECK(!error, io, "cannot make the folder ", folder.string(), ": ", error.message());
  require_inside();
  return place;
}

}  // namespace titan::download
