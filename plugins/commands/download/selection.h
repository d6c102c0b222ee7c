// Which files of a repo are fetched. Pure. Used by main.cpp of titan-download.
#pragma once

#include <string>
#include <vector>

#include "remote_file.h"

namespace titan::download {

enum class Wanted { tokenizer, model, dataset };

struct Selection {
  Wanted wanted = Wanted::tokenizer;
  /// Shell globs on the whole path, '*' reaching across slashes. Empty: for a tokenizer or a model
  /// the files by which torchtitan's download script knows them, in whatever folder; else all.
  std::vector<std::string> include;
  std::vector<std::string> exclude;
};

/// The chosen ones of `files`, in their order. Throws a data Error that says what there is when
/// nothing is left or a glob of `include` takes nothing, and when a name is taken twice.
std::vector<RemoteFile> choose(const std::vector<RemoteFile>& files, const Selection& selection,
                               const std::string& repo);

}  // namespace titan::download
