#include <titan/checkpoints/unlisted_files.h>

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/json_string.h>

namespace titan {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostUnlistedShown = 8;

bool is_regular(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// The entries directly in `folder`; folders end with "/".
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    names.push_back(entry->path().filename().string() + (entry->is_directory(ignored) ? "/" : ""));
  }
  TITAN_CHECK(!error, io, "cannot list folder ", folder.string(), ": ", error.message());
  std::sort(names.begin(), names.end());
  return names;
}

/// The files that the index names; absent if it cannot be read, which other checks report.
std::optional<std::set<std::string>> files_in_index(const fs::path& path) {
  try {
    const Value index = parse_json(read_text(path));
    const Value* map = index.find("weight_map");
    if (!map || !map->is_map()) return std::nullopt;
    std::set<std::string> files;
    for (const auto& [tensor, file] : map->as_map())
      if (file.is_string()) files.insert(file.as_string());
    return files;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::string> unlisted_in_checkpoint(const fs::path& folder,
                                                const CheckpointManifest& manifest) {
  std::set<std::string> own = {kManifestName};
  for (const ManifestFile& file : manifest.files) own.insert(file.name);
  std::vector<std::string> unlisted = names_in(folder);
  std::erase_if(unlisted, [&](const std::string& name) { return own.contains(name); });
  return unlisted;
}

std::vector<std::string> unlisted_in_hf_folder(const fs::path& folder) {
  std::optional<std::set<std::string>> own;
  if (is_regular(folder / kHfIndexName))
    own = files_in_index(folder / kHfIndexName);
  else if (is_regular(folder / kHfSingleName))
    own = std::set<std::string>{kHfSingleName};
  if (!own) return {};
  std::vector<std::string> unlisted = names_in(folder);
  std::erase_if(unlisted, [&](const std::string& name) {
    const bool is_work = name == std::string(kExportFolderName) + "/";
    return !is_work && (!name.ends_with(".safetensors") || own->contains(name));
  });
  return unlisted;
}

int64_t bytes_of_unlisted(const fs::path& folder, const std::string& name) {
  const fs::path path = folder / name;
  std::error_code error;
  if (is_regular(path)) {
    const uintmax_t bytes = fs::file_size(path, error);
    return error ? 0 : static_cast<int64_t>(bytes);
  }
  int64_t bytes = 0;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (is_regular(entry->path()))
      bytes += static_cast<int64_t>(fs::file_size(entry->path(), ignored));
  }
  return bytes;
}

std::string unlisted_files_text(const std::vector<std::string>& unlisted,
                                const std::string& by_whom) {
  if (unlisted.empty()) return "";
  std::string text = std::to_string(unlisted.size()) +
                     (unlisted.size() == 1 ? " unlisted file, which " : " unlisted files, which ") +
                     by_whom + " does not name" + (unlisted.size() == 1 ? ", is" : ", are") +
                     " not counted: ";
  for (size_t i = 0; i < std::min(unlisted.size(), kMostUnlistedShown); ++i)
    text += (i > 0 ? ", " : "") + printable(unlisted[i]);
  if (unlisted.size() > kMostUnlistedShown)
    text += " and " + std::to_string(unlisted.size() - kMostUnlistedShown) + " more";
  return text;
}

}  // namespace titan
