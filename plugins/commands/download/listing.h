// What a repo holds at one commit. Used by main.cpp of titan-download.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http.h"
#include "remote_file.h"
#include "retries.h"
#include "urls.h"

namespace titan::download {

/// How requests are made; all references outlive the calls.
struct Connection {
  HttpClient& client;
  const RepoUrls& urls;
  const RetryPolicy& policy;
  const StopRequest& stop;
  const Retries::Say& say;
};

/// The commit that a branch, tag or commit stands for now: all files are taken from that one.
std::string commit_of(const Connection& connection, const std::string& revision);

/// Every file of the commit, all pages. Names are not judged yet.
std::vector<RemoteFile> list_files(const Connection& connection, const std::string& commit);

/// The files in one page of the hub's answer: a JSON list of {type, path, size, oid, lfs: {oid,
/// size}}. `url` names it in the data Errors thrown for anything else.
std::vector<RemoteFile> parse_page(std::string_view json, const std::string& url);

}  // namespace titan::download
