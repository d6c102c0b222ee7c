// See c4_dataset.h.
#include "c4_dataset.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/program/installation.h>

namespace titan::datasets {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSample = "tests/assets/corpus/train.jsonl";

/// Names of a split's shards and of the section that configures its path.
struct Split {
  const char* dataset;
  const char* prefix;
  const char* section;
};
constexpr Split kTrain{"c4", "c4-train.", "training"};
constexpr Split kValidation{"c4_validation", "c4-validation.", "validation"};

std::vector<SourceFile> shards_in(const fs::path& folder, const Split& split) {
  std::vector<SourceFile> files = files_in_folder(folder, {".json.gz"});
  std::erase_if(files,
                [&](const SourceFile& file) { return !file.name.starts_with(split.prefix); });
  return files;
}

std::vector<SourceFile> find_split(const std::string& path, const Split& split) {
  TITAN_CHECK(!path.empty(), config, "dataset '", split.dataset,
              "' reads local files: get them with `titan download dataset allenai/c4 --include "
              "'en/",
              split.prefix, "*.json.gz'` and set [", split.section,
              "] dataset_path to their folder");
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return find_source_files(path, json_lines_suffixes());
  const fs::path inner = fs::path(path) / "en";
  const bool has_inner = fs::is_directory(inner, ignored);
  std::vector<SourceFile> files = shards_in(path, split);
  if (files.empty() && has_inner) files = shards_in(inner, split);
  if (files.empty()) files = files_in_folder(path, json_lines_suffixes());
  if (files.empty() && has_inner) files = files_in_folder(inner, json_lines_suffixes());
  TITAN_CHECK(!files.empty(), data, "folder '", path, "' of dataset '", split.dataset,
              "' holds neither ", split.prefix,
              "*.json.gz nor other *.json or *.jsonl files, "
              "plain, .gz or .zst, neither there nor in 'en'");
  return files;
}

std::vector<SourceFile> find_sample(const std::string& path) {
  if (!path.empty()) return find_source_files(path, json_lines_suffixes());
  std::error_code ignored;
  const std::string sample = with_bundled_files(kSample);
  TITAN_CHECK(fs::exists(sample, ignored), io, "dataset 'c4_test' without a dataset_path reads '",
              kSample, "', which is neither in '", fs::current_path().string(), "' nor in '",
              (installation_folder() / "share/titan").string(),
              "'; install Titan again or set [training] dataset_path");
  return find_source_files(sample, {});
}

}  // namespace

C4Dataset::C4Dataset(const JsonLinesOptions& options, DatasetContext context)
    : JsonLines(options, context.path, find_split(context.path, kTrain)) {}

C4ValidationDataset::C4ValidationDataset(const JsonLinesOptions& options, DatasetContext context)
    : JsonLines(options, context.path, find_split(context.path, kValidation)) {}

C4TestDataset::C4TestDataset(const JsonLinesOptions& options, DatasetContext context)
    : JsonLines(options, context.path.empty() ? with_bundled_files(kSample) : context.path,
                find_sample(context.path)) {}

}  // namespace titan::datasets
