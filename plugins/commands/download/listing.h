// Lists the files of a repo at one commit. Used by plugin.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http.h"
#include "remote_file.h"
#include "retries.h"
#include "urls.h"

namespace titan::download {

/// What all requests share; references outlive the calls.
struct Connection {
  HttpClient& client;
  const RepoUrls& urls;
  const RetryPolicy& policy;
  const StopRequest& stop;
  const Retries::Say& say;
};

/// The commit of a branch, tag or commit name at this moment. All files are then fetched from this
/// commit.
std::string commit_of(const Connection& connection, const std::string& revision);

/// All files of the commit, from all pages. Names are not checked yet.
std::vector<RemoteFile> list_files(const Connection& connection, const std::string& commit);

/// The files in one page of the hub's answer, a JSON list of {type, path, size, oid, lfs: {oid,
/// size}}. Throws a data Error that names `url` for anything else.
std::vector<RemoteFile> parse_page(std::string_view json, const std::string& url);

}  // namespace titan::download
