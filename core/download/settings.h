// What titan download was asked for: command line, environment, token file. Used by main.cpp of
// titan-download.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/environment.h"
#include "core/download/http.h"
#include "core/download/retries.h"
#include "core/download/selection.h"
#include "core/download/urls.h"

namespace titan::core::download {

struct Settings {
  Selection selection;
  std::string repo, revision, base_url, token, ca_file;
  std::filesystem::path output;  ///< empty: the kind's own place
  RetryPolicy retries;
  int stall_timeout_s = 30;
  int jobs = 4;
  bool is_dry_run = false, is_quiet = false, wants_help = false;
};

/// Throws config Errors. `arguments` follow "titan download".
Settings parse_settings(const std::vector<std::string>& arguments, const Environment& environment);

/// ./assets/hf/<repo>, which model.hf_assets_path can name; ./assets/datasets/<repo>.
std::filesystem::path default_output(Wanted wanted, const RepoUrls& urls);

}  // namespace titan::core::download
