// The request of titan download, from command line, environment and token file. Used by plugin.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/program/environment.h>

#include "selection.h"
#include "urls.h"

namespace titan::download {

/// The flags.
struct DownloadOptions {
  std::string revision = "main";
  std::optional<std::string> token;
  std::optional<std::filesystem::path> output;
  std::vector<std::string> include, exclude;
  std::optional<std::string> base_url;
  int64_t jobs = 4;
  int64_t retries = 5;
  double retry_wait = 1;       // seconds
  int64_t stall_timeout = 30;  // seconds
  bool dry_run = false;
  bool quiet = false;
};

struct Settings {
  Selection selection;
  std::string repo, base_url, token, ca_file;
  std::filesystem::path output;  ///< empty: the default_output of the kind
};

/// Throws config Errors. `words`: kind and repo.
Settings settings_of(const DownloadOptions& options, const std::vector<std::string>& words,
                     const Environment& environment);

/// ./assets/hf/<repo>, the folder for model.hf_assets_path, or ./assets/datasets/<repo>.
std::filesystem::path default_output(Wanted wanted, const RepoUrls& urls);

}  // namespace titan::download
