// Brings many files at once, with progress, until all are there, some cannot be had, or a signal
// comes. Used by main.cpp of titan-download.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "http.h"
#include "progress.h"
#include "remote_file.h"
#include "retries.h"
#include "urls.h"

namespace titan::download {

struct DownloadPlan {
  const RepoUrls& urls;
  std::string commit;
  std::vector<RemoteFile> files;
  std::filesystem::path output;
  HttpSettings http;
  RetryPolicy retries;
  int jobs = 4;  ///< files at once
  Show show = Show::lines;
};

struct DownloadResult {
  size_t kept = 0, fetched = 0, replaced = 0;
  int64_t bytes_received = 0;
  double seconds = 0;
  std::vector<std::string> failures;  ///< one text for each file that cannot be had
};

/// Makes the output folder. Throws an io Error when there is no room for all, and when something
/// fails that the next file would meet too; what is half loaded stays. After a signal it returns
/// with fewer files.
DownloadResult run_download(const DownloadPlan& plan, StopRequest& stop);

}  // namespace titan::download
