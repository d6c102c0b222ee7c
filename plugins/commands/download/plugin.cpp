// titan download: download files from the Hugging Face Hub, checked and resumable. This plugin
// alone loads libcurl and its dependencies, so a training run does not.
#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/log.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/quantity_text.h>
#include <titan/program/terminal.h>
#include <titan/shown_text.h>

#include "download_run.h"
#include "listing.h"
#include "settings.h"
#include "url.h"

namespace titan::download {
namespace {

std::string count_text(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

int64_t total_of(const std::vector<RemoteFile>& files) {
  int64_t total = 0;
  for (const RemoteFile& file : files) total += file.size;
  return total;
}

void print_files(const std::vector<RemoteFile>& files) {
  const auto line = [](int64_t size, const std::string& text) {
    constexpr size_t kWidth = 15;
    const std::string number = std::to_string(size);
    const std::string blanks(kWidth - std::min(number.size(), kWidth), ' ');
    print(blanks + number + "  " + text + "\n");
  };
  for (const RemoteFile& file : files) line(file.size, printable(file.path, file.path.size()));
  line(total_of(files), "in " + count_text(files.size(), "file"));
}

int stopped(int signal, const std::string& output) {
  log::warn("stopped; complete files are in " + output +
            ", incomplete ones are kept as .part; run the same command again to continue");
  return 128 + signal;
}

/// Logs the summary and returns the exit code.
int report(const DownloadResult& result, const std::string& output, const std::string& commit,
           bool is_quiet) {
  for (const std::string& failure : result.failures) log::error(failure);
  const size_t there = result.kept + result.fetched + result.replaced;
  if (!result.failures.empty()) {
    log::error(count_text(result.failures.size(), "file") + " could not be downloaded, " +
               std::to_string(there) + " are in " + output);
    return kExitRuntimeError;
  }
  if (is_quiet) return kExitDone;
  std::string text =
      count_text(there, "file") + " of commit " + commit.substr(0, 12) + " in " + output;
  if (result.kept) text += ", " + std::to_string(result.kept) + " of them already existed";
  if (result.bytes_received > 0)
    text += "; downloaded " + bytes_text(static_cast<double>(result.bytes_received)) + " in " +
            duration_text(result.seconds) + " (" +
            bytes_text(static_cast<double>(result.bytes_received) / result.seconds) + "/s)";
  log::info(text);
  return kExitDone;
}

class Download final : public Command {
 public:
  static constexpr CommandWords kWords{"tokenizer|dataset|model REPO", 2, 2};

  Download(const DownloadOptions& options, const CommandContext& context)
      : options_(options), words_(context.words) {}

  int run() override {
    const Settings settings = settings_of(options_, words_, Environment::of_process());
    TITAN_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, io, "cannot start libcurl");
    const Wanted wanted = settings.selection.wanted;
    const RepoUrls urls(settings.base_url,
                        wanted == Wanted::dataset ? RepoKind::dataset : RepoKind::model,
                        settings.repo);
    const std::filesystem::path output =
        settings.output.empty() ? default_output(wanted, urls) : settings.output;
    StopRequest stop;
    try {
      return fetch(settings, urls, output, stop);
    } catch (const Stopped&) {
      return stopped(stop.signal(), output.string());
    }
  }

 private:
  int fetch(const Settings& settings, const RepoUrls& urls, const std::filesystem::path& output,
            StopRequest& stop) const {
    const HttpSettings http = {.token = settings.token,
                               .token_origin = origin_of(urls.base()),
                               .ca_file = settings.ca_file,
                               .stall_timeout_s = static_cast<int>(options_.stall_timeout)};
    const RetryPolicy retries = {.retries = static_cast<int>(options_.retries),
                                 .wait_s = options_.retry_wait};
    HttpClient client(http, stop);
    const Retries::Say say = [](const std::string& line) { log::warn(line); };
    const Connection connection = {client, urls, retries, stop, say};
    const std::string commit = commit_of(connection, options_.revision);
    std::vector<RemoteFile> files =
        choose(list_files(connection, commit), settings.selection, urls.name());
    if (options_.dry_run) return print_files(files), kExitDone;
    const Show show = options_.quiet            ? Show::nothing
                      : ::isatty(STDERR_FILENO) ? Show::bar
                                                : Show::lines;
    if (show != Show::nothing)
      log::info(urls.page() + " at " + commit.substr(0, 12) + ": " +
                count_text(files.size(), "file") + ", " +
                bytes_text(static_cast<double>(total_of(files))) + ", to " + output.string());
    const DownloadPlan plan = {.urls = urls,
                               .commit = commit,
                               .files = std::move(files),
                               .output = output,
                               .http = http,
                               .retries = retries,
                               .jobs = static_cast<int>(options_.jobs),
                               .show = show};
    const DownloadResult result = run_download(plan, stop);
    if (stop.signal()) return stopped(stop.signal(), output.string());
    return report(result, output.string(), commit, options_.quiet);
  }

  DownloadOptions options_;
  std::vector<std::string> words_;
};

}  // namespace
}  // namespace titan::download

TITAN_PLUGIN(plugin) {
  using titan::download::Download;
  using Options = titan::download::DownloadOptions;
  plugin
      .add<Download>("download", "download files from the Hugging Face Hub, checked and resumable")
      .option("revision", &Options::revision, "branch, tag or commit")
      .option("token", &Options::token,
              "for private and gated repos; prefer HF_TOKEN or the file that 'hf auth login' "
              "writes, which other users of this computer cannot see")
      .option("output", &Options::output,
              "folder; default ./assets/hf/<repo>, for a dataset ./assets/datasets/<repo>")
      .option("include", &Options::include,
              "only files whose path matches, instead of the default ones; can be repeated; '*' "
              "matches slashes too")
      .option("exclude", &Options::exclude, "skip files whose path matches; can be repeated")
      .option("base_url", &Options::base_url,
              "another hub (default HF_ENDPOINT, else https://huggingface.co)")
      .option("jobs", &Options::jobs, "files downloaded in parallel")
      .between(1, 64)
      .option("retries", &Options::retries, "retries of a request without progress in between")
      .between(0, 100)
      .option("retry_wait", &Options::retry_wait,
              "seconds before the first retry; doubled for each further one")
      .greater_than(0)
      .at_most(600)
      .option("stall_timeout", &Options::stall_timeout,
              "seconds without data after which a connection is closed and retried")
      .between(1, 3600)
      .option("dry_run", &Options::dry_run, "list the files and their sizes, download nothing")
      .option("quiet", &Options::quiet, "show no progress");
}
