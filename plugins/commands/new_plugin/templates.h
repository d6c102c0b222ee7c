// The templates of the installation: a folder for each kind of plugin, and the folder `common` with
// the files of every project.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "names.h"

namespace titan::commands {

/// A file of a project: its path below the project's folder, and its text.
struct ProjectFile {
  std::string path;
  std::string text;
};

class Templates {
 public:
  /// `folder`: <prefix>/share/titan/template. Throws an io Error if it does not exist.
  explicit Templates(std::filesystem::path folder);

  /// The kinds with a template, sorted.
  const std::vector<std::string>& kinds() const { return kinds_; }

  /// Throws a config Error for a kind without a template.
  void require(const std::string& kind) const;

  /// Placeholders of a project of `kind`: those of `names`, and the texts of texts.toml in the
  /// folders `common` and `kind`, under their keys in upper case. The kind's own texts prevail.
  Placeholders placeholders(const std::string& kind, const PluginNames& names) const;

  /// The files of `common` and of `kind` with the placeholders replaced, sorted by path.
  std::vector<ProjectFile> files(const std::string& kind, const Placeholders& placeholders) const;

 private:
  std::filesystem::path folder_;
  std::vector<std::string> kinds_;
};

}  // namespace titan::commands
