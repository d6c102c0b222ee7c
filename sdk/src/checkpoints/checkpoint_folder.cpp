#include <titan/checkpoints/checkpoint_folder.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>

#include <titan/checkpoints/manifest.h>
#include <titan/error.h>
#include <titan/files/file.h>

namespace titan {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kAsidePrefix = "replaced-";

}  // namespace

Marker marker_of(const std::filesystem::path& folder) {
  std::error_code ignored;  // an entry that cannot be accessed counts as missing
  const auto has = [&](const char* name) {
    return std::filesystem::is_regular_file(folder / name, ignored);
  };
  if (has(kManifestName)) return Marker::manifest;
  if (has(kHfIndexName) || has(kHfSingleName)) return Marker::hf_index;
  return has(".metadata") ? Marker::dcp : Marker::none;
}

std::vector<CheckpointStep> list_steps(const std::filesystem::path& folder) {
  std::vector<CheckpointStep> steps;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  if (error == std::errc::no_such_file_or_directory) return steps;
  for (const std::filesystem::directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    const auto step = step_of_name(entry->path().filename().string());
    std::error_code ignored;  // another program's purge may just have removed it
    if (step && entry->is_directory(ignored))
      steps.push_back({*step, entry->path(), marker_of(entry->path())});
  }
  TITAN_CHECK(!error, io, "cannot list folder ", folder.string(), ": ", error.message());
  std::sort(steps.begin(), steps.end(), [](const CheckpointStep& a, const CheckpointStep& b) {
    return std::tie(a.step, a.path) < std::tie(b.step, b.path);
  });
  return steps;
}

std::filesystem::path step_path(const std::filesystem::path& folder, int64_t step) {
  return folder / (std::string(kPrefix) + std::to_string(step));
}

std::filesystem::path aside_path(const std::filesystem::path& step_folder) {
  return step_folder.parent_path() / (std::string(kAsidePrefix) + step_folder.filename().string());
}

void remove_checkpoint(const std::filesystem::path& step_folder) {
  std::error_code error;
  for (const char* marker : {kManifestName, kHfIndexName, kHfSingleName})
    std::filesystem::remove(step_folder / marker, error);
  std::filesystem::remove_all(step_folder, error);
  TITAN_CHECK(!error, io, "cannot remove '", step_folder.string(), "': ", error.message());
}

void put_back_asides(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> asides;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    std::string_view name = entry.path().native();
    name.remove_prefix(name.rfind('/') + 1);
    if (!name.starts_with(kAsidePrefix)) continue;
    name.remove_prefix(kAsidePrefix.size());
    if (step_of_name(name)) asides.push_back(folder / name);
  }
  for (const std::filesystem::path& step : asides) {
    if (marker_of(step) != Marker::none) {
      remove_checkpoint(aside_path(step));
      continue;
    }
    if (std::filesystem::exists(step, ignored)) remove_checkpoint(step);
    rename_file(aside_path(step), step);
  }
}

void remove_export_folders(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const CheckpointStep& step : list_steps(folder))
    if (step.marker == Marker::hf_index &&
        std::filesystem::is_directory(step.path / kExportFolderName, ignored))
      remove_checkpoint(step.path / kExportFolderName);
}

}  // namespace titan
