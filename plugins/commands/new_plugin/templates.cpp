#include "templates.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/settings/toml_source.h>
#include <titan/suggest.h>

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommon = "common";     // the folder of files that all kinds share
constexpr const char* kTexts = "texts.toml";  // texts for placeholders; not a file of the project

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// Adds the texts of `file` to `placeholders`, and replaces those that are there.
void read_texts(const fs::path& file, Placeholders& placeholders) {
  Diagnostics diagnostics;
  const std::optional<SettingList> texts = read_toml(file, diagnostics);
  if (!texts || !diagnostics.can_start()) throw ConfigError(diagnostics);
  for (const Setting& text : texts->settings) {
    std::string value = text.value.as_string();
    if (!value.empty() && value.back() == '\n') value.pop_back();
    placeholders[upper_case(dotted(text.path))] = std::move(value);
  }
}

}  // namespace

Templates::Templates(fs::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  TITAN_CHECK(fs::is_directory(folder_, error), io, "there are no templates in '", folder_.string(),
              "'; install Titan again with cmake --install");
  for (const auto& entry : fs::directory_iterator(folder_))
    if (entry.path().filename() != kCommon) kinds_.push_back(entry.path().filename().string());
  std::sort(kinds_.begin(), kinds_.end());
}

void Templates::require(const std::string& kind) const {
  if (std::binary_search(kinds_.begin(), kinds_.end(), kind)) return;
  std::string listed;
  for (const std::string& known : kinds_) listed += (listed.empty() ? "" : ", ") + known;
  const std::string hint = did_you_mean(kind, kinds_);
  fail(ErrorKind::config, "there is no plugin kind '", kind, "'", hint.empty() ? "" : "; ", hint,
       "\n  kinds: ", listed);
}

Placeholders Templates::placeholders(const std::string& kind, const PluginNames& names) const {
  Placeholders texts;
  read_texts(folder_ / kCommon / kTexts, texts);
  read_texts(folder_ / kind / kTexts, texts);
  texts["KIND"] = kind;
  Placeholders placeholders = names.placeholders();
  // texts may contain texts of other keys, and names
  for (const auto& [key, text] : texts)
    placeholders[key] = filled_in(filled_in(text, texts), names.placeholders());
  return placeholders;
}

std::vector<ProjectFile> Templates::files(const std::string& kind,
                                          const Placeholders& placeholders) const {
  std::map<std::string, std::string> texts;  // by path; a file of the kind replaces a common one
  for (const fs::path& source : {folder_ / kCommon, folder_ / kind})
    for (const auto& entry : fs::recursive_directory_iterator(source))
      if (entry.is_regular_file() && entry.path().filename() != kTexts)
        texts[filled_in(fs::relative(entry.path(), source).string(), placeholders)] =
            filled_in(read_text(entry.path()), placeholders);
  std::vector<ProjectFile> files;
  for (const auto& [path, text] : texts) files.push_back({path, text});
  return files;
}

}  // namespace titan::commands
