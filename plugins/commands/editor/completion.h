// What a shell may offer for the last word of a command line. Used by `titan __complete`.
#pragma once

#include <string>
#include <vector>

#include <titan/value.h>

namespace titan::commands {

struct Candidate {
  std::string word;
  std::string text = {};  ///< what it is; may be empty
};

struct Offer {
  enum class Else { nothing, files, folders };
  std::vector<Candidate> candidates;
  Else otherwise = Else::nothing;  ///< what the shell itself offers
  bool continues = false;          ///< a candidate is the beginning of a word: no blank after it
};

/// `words`: the command line after `titan`; the last is completed and may be empty. `declared`: see
/// declared.h. Reads the recipe of --job.config_file, if there is one, for the chosen components.
Offer complete(const Value& declared, const std::vector<std::string>& words);

/// The folders of plugins that a command line names: --path, --plugins.paths, and [plugins] paths
/// of its recipe.
std::vector<std::string> plugin_folders(const std::vector<std::string>& words);

}  // namespace titan::commands
