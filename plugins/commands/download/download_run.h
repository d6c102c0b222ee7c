// Downloads files in parallel and shows progress, until all are complete, one fails for good, or a
// signal arrives. Used by plugin.cpp.
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
  int jobs = 4;  ///< files in parallel
  Show show = Show::lines;
};

struct DownloadResult {
  size_t kept = 0, fetched = 0, replaced = 0;
  int64_t bytes_received = 0;
  double seconds = 0;
  std::vector<std::string> failures;  ///< one text for each file that failed
};

/// Makes the output folder. Throws an io Error when the disk has no room for all files, or for a
/// failure that would affect the next file too. Incomplete files stay. After a signal it returns
/// with fewer files.
DownloadResult run_download(const DownloadPlan& plan, StopRequest& stop);

}  // namespace titan::download
