// Chooses the files of a repo to fetch. Pure. Used by plugin.cpp.
#pragma once

#include <string>
#include <vector>

#include "remote_file.h"

namespace titan::download {

enum class Wanted { tokenizer, model, dataset };

struct Selection {
  Wanted wanted = Wanted::tokenizer;
  /// Shell globs on the whole path; '*' matches slashes too. Empty: for a tokenizer or a model the
  /// names that torchtitan's download script selects, in any folder; else all files.
  std::vector<std::string> include;
  std::vector<std::string> exclude;
};

/// The chosen `files`, in their order. Throws a data Error that lists the repo's files when none is
/// left or a glob of `include` matches none, and when a name occurs twice.
std::vector<RemoteFile> choose(const std::vector<RemoteFile>& files, const Selection& selection,
                               const std::string& repo);

}  // namespace titan::download
