#include "selection.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "part_file.h"
#include "paths.h"

namespace titan::download {
namespace {

// matched against the name without folders
const std::vector<std::string> kTokenizerFiles = {
    "tokenizer.json", "tokenizer_config.json",   "tokenizer.model",  "vocab.*",
    "merges.txt",     "special_tokens_map.json", "added_tokens.json"};
const std::vector<std::string> kModelFiles = {"*.safetensors", "*.safetensors.index.json",
                                              "config.json", "generation_config.json"};

bool matches(const std::string& glob, const std::string& text) {
  return ::fnmatch(glob.c_str(), text.c_str(), FNM_NOESCAPE) == 0;
}

bool matches_any(const std::vector<std::string>& globs, const std::string& text) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return matches(glob, text); });
}

/// A folder's name matches everything in it.
std::vector<std::string> with_folders(std::vector<std::string> globs) {
  for (std::string& glob : globs)
    if (glob.ends_with('/')) glob += '*';
  return globs;
}

bool is_wanted(const RemoteFile& file, Wanted wanted) {
  const std::string name = file.path.substr(file.path.rfind('/') + 1);
  if (wanted == Wanted::dataset) return true;
  return matches_any(kTokenizerFiles, name) ||
         (wanted == Wanted::model && matches_any(kModelFiles, name));
}

std::string some_of(const std::vector<RemoteFile>& files) {
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t i = 0; i < std::min(files.size(), kShown); ++i)
    text += (i ? ", " : "") + printable(files[i].path);
  if (files.size() > kShown) text += ", and " + std::to_string(files.size() - kShown) + " more";
  return text.empty() ? "nothing" : text;
}

/// A .part file or its note must not have the name of another chosen file.
void require_names_of_their_own(const std::vector<RemoteFile>& files) {
  std::set<std::string> taken;
  for (const RemoteFile& file : files)
    TITAN_CHECK(taken.insert(file.path).second, data, "the hub lists '", file.path, "' twice");
  for (const RemoteFile& file : files)
    for (const std::string& name : {part_name(file.path), note_name(file.path)})
      TITAN_CHECK(!taken.contains(name), data, "'", name,
                  "' is a file of the repo, and also the name of the incomplete download of '",
                  file.path, "'; fetch them in two runs with --exclude");
}

}  // namespace

std::vector<RemoteFile> choose(const std::vector<RemoteFile>& files, const Selection& selection,
                               const std::string& repo) {
  const std::vector<std::string> include = with_folders(selection.include);
  const std::vector<std::string> exclude = with_folders(selection.exclude);
  for (const std::string& glob : include)
    TITAN_CHECK(std::any_of(files.begin(), files.end(),
                            [&](const RemoteFile& file) { return matches(glob, file.path); }),
                data, "--include '", glob, "' matches no file of ", repo, ", which holds ",
                some_of(files));
  std::vector<RemoteFile> chosen;
  for (const RemoteFile& file : files) {
    const bool is_in =
        include.empty() ? is_wanted(file, selection.wanted) : matches_any(include, file.path);
    if (!is_in || matches_any(exclude, file.path)) continue;
    require_harmless(file.path);
    chosen.push_back(file);
  }
  TITAN_CHECK(
      !chosen.empty(), data, "there is nothing to fetch from ", repo, ", which holds ",
      some_of(files),
      exclude.empty() ? "; name files by --include" : "; --exclude removes every selected file");
  require_names_of_their_own(chosen);
  return chosen;
}

}  // namespace titan::download
