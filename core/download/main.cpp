// titan-download: what `titan download` runs. A program of its own, so that libcurl and the
// libraries behind it are not loaded by a training run.
#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/shown_text.h>

#include "core/base/exit_codes.h"
#include "core/base/quantity_text.h"
#include "core/base/terminal.h"
#include "core/download/download_run.h"
#include "core/download/listing.h"
#include "core/download/settings.h"

namespace {

namespace download = titan::core::download;
namespace log = titan::log;

std::string count_text(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

int64_t total_of(const std::vector<download::RemoteFile>& files) {
  int64_t total = 0;
  for (const download::RemoteFile& file : files) total += file.size;
  return total;
}

void print_files(const std::vector<download::RemoteFile>& files) {
  const auto line = [](int64_t size, const std::string& text) {
    constexpr size_t kWidth = 15;
    const std::string number = std::to_string(size);
    const std::string blanks(kWidth - std::min(number.size(), kWidth), ' ');
    titan::core::print(blanks + number + "  " + text + "\n");
  };
  for (const download::RemoteFile& file : files)
    line(file.size, titan::printable(file.path, file.path.size()));
  line(total_of(files), "in " + count_text(files.size(), "file"));
}

int stopped(int signal, const std::string& output) {
  log::warn("stopped; what is whole has its name in " + output +
            ", what is not is kept as .part; run the same command again to go on");
  return 128 + signal;
}

/// The summary; the exit code.
int report(const download::DownloadResult& result, const std::string& output,
           const std::string& commit, bool is_quiet) {
  for (const std::string& failure : result.failures) log::error(failure);
  const size_t there = result.kept + result.fetched + result.replaced;
  if (!result.failures.empty()) {
    log::error(count_text(result.failures.size(), "file") + " could not be had, " +
               std::to_string(there) + " are in " + output);
    return titan::core::kExitRuntimeError;
  }
  if (is_quiet) return titan::core::kExitDone;
  std::string text =
      count_text(there, "file") + " of commit " + commit.substr(0, 12) + " in " + output;
  if (result.kept) text += ", " + std::to_string(result.kept) + " of them were there";
  if (result.bytes_received > 0)
    text += "; loaded " + titan::core::bytes_text(static_cast<double>(result.bytes_received)) +
            " in " + titan::core::duration_text(result.seconds) + " (" +
            titan::core::bytes_text(static_cast<double>(result.bytes_received) / result.seconds) +
            "/s)";
  log::info(text);
  return titan::core::kExitDone;
}

int run(const std::vector<std::string>& arguments) {
  using namespace download;
  const Settings settings = parse_settings(arguments, titan::core::Environment::of_process());
  if (settings.wants_help) return titan::core::kExitDone;
  const Wanted wanted = settings.selection.wanted;
  const RepoUrls urls(settings.base_url,
                      wanted == Wanted::dataset ? RepoKind::dataset : RepoKind::model,
                      settings.repo);
  const HttpSettings http = {.token = settings.token,
                             .token_origin = origin_of(urls.base()),
                             .ca_file = settings.ca_file,
                             .stall_timeout_s = settings.stall_timeout_s};
  const std::filesystem::path output =
      settings.output.empty() ? default_output(wanted, urls) : settings.output;
  StopRequest stop;
  try {
    HttpClient client(http, stop);
    const Retries::Say say = [](const std::string& line) { log::warn(line); };
    const Connection connection = {client, urls, settings.retries, stop, say};
    const std::string commit = commit_of(connection, settings.revision);
    std::vector<RemoteFile> files =
        choose(list_files(connection, commit), settings.selection, urls.name());
    if (settings.is_dry_run) return print_files(files), titan::core::kExitDone;
    const Show show = settings.is_quiet         ? Show::nothing
                      : ::isatty(STDERR_FILENO) ? Show::bar
                                                : Show::lines;
    if (show != Show::nothing)
      log::info(urls.page() + " at " + commit.substr(0, 12) + ": " +
                count_text(files.size(), "file") + ", " +
                titan::core::bytes_text(static_cast<double>(total_of(files))) + ", to " +
                output.string());
    const DownloadPlan plan = {.urls = urls,
                               .commit = commit,
                               .files = std::move(files),
                               .output = output,
                               .http = http,
                               .retries = settings.retries,
                               .jobs = settings.jobs,
                               .show = show};
    const DownloadResult result = run_download(plan, stop);
    if (stop.signal()) return stopped(stop.signal(), output.string());
    return report(result, output.string(), commit, settings.is_quiet);
  } catch (const Stopped&) {
    return stopped(stop.signal(), output.string());
  }
}

}  // namespace

int main(int argc, char** argv) {
  // a reader that is gone and a file that may not grow are errors with a text, not ends
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  titan::core::print_whole_lines();
  try {
    TITAN_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, io, "cannot start libcurl");
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const titan::Error& e) {
    titan::core::print_error(e.what());
    return e.kind() == titan::ErrorKind::config ? titan::core::kExitConfigError
                                                : titan::core::kExitRuntimeError;
  } catch (const std::exception& e) {
    titan::core::print_error(e.what());
    return titan::core::kExitRuntimeError;
  }
}
