#include "core/download/settings.h"

#include <algorithm>
#include <charconv>

#include <titan/error.h>

#include "core/base/arguments.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace titan::core::download {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr char kUsage[] = "titan download tokenizer|dataset|model REPO [OPTION]...";

po::options_description flags() {
  po::options_description all;
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  const auto texts = [](const char* name) {
    return po::value<std::vector<std::string>>()->value_name(name);
  };
  all.add_options()("revision", text("R")->default_value("main"), "branch, tag or commit")(
      "token", text("T"),
      "for private and gated repos; better by HF_TOKEN or the file that 'hf auth login' writes, "
      "which other users of this computer cannot see")(
      "output", text("DIR"), "default ./assets/hf/<repo>, of a dataset ./assets/datasets/<repo>")(
      "include", texts("GLOB"),
      "only files whose path matches, instead of the usual ones; can be repeated; '*' reaches "
      "across slashes")("exclude", texts("GLOB"), "but not these; can be repeated")(
      "base-url", text("URL"), "another hub (default HF_ENDPOINT, else https://huggingface.co)")(
      "jobs", text("N")->default_value("4"), "files at once")(
      "retries", text("N")->default_value("5"), "tries after the first, without progress between")(
      "retry-wait", text("SECONDS")->default_value("1"), "before the first of them; then doubled")(
      "stall-timeout", text("SECONDS")->default_value("30"),
      "a connection that gives nothing so long is cut and tried again")(
      "dry-run", "list the files and their sizes, load nothing")("quiet,q", "no progress");
  return all;
}

double retry_wait(const std::string& text) {
  double seconds = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, seconds);
  TITAN_CHECK(error == std::errc() && end == last && seconds > 0 && seconds <= 600, config,
              "--retry-wait = '", text, "' is not a number of seconds above 0 and up to 600");
  return seconds;
}

Wanted wanted_of(const std::string& word) {
  if (word == "tokenizer") return Wanted::tokenizer;
  if (word == "model") return Wanted::model;
  TITAN_CHECK(word == "dataset", config,
              "titan download fetches a tokenizer, a dataset or a model, not '", word,
              "'; usage: ", kUsage);
  return Wanted::dataset;
}

/// Where the hub's own programs keep it.
std::string stored_token(const Environment& environment) {
  fs::path path;
  if (const auto file = environment.get("HF_TOKEN_PATH"))
    path = *file;
  else if (const auto home = environment.get("HF_HOME"))
    path = fs::path(*home) / "token";
  else if (const auto cache = environment.get("XDG_CACHE_HOME"))
    path = fs::path(*cache) / "huggingface" / "token";
  else if (const auto user = environment.get("HOME"))
    path = fs::path(*user) / ".cache" / "huggingface" / "token";
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) ? read_text(path) : std::string();
}

std::string token_of(const Arguments& parsed, const Environment& environment) {
  std::string token(
      trimmed(parsed.flags.count("token") ? parsed.flags["token"].as<std::string>()
                                    : environment.get("HF_TOKEN").value_or("")));
  TITAN_CHECK(!token.empty() || !parsed.flags.count("token"), config, "--token is empty");
  if (token.empty()) token = trimmed(stored_token(environment));
  // the value itself is not shown
  TITAN_CHECK(std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; }),
              config,
              "the token holds a space or a character outside ASCII; look at --token, "
              "HF_TOKEN or the token file");
  return token;
}

}  // namespace

Settings parse_settings(const std::vector<std::string>& arguments, const Environment& environment) {
  const Arguments parsed = parse_arguments(kUsage, flags(), arguments, 2, 2);
  Settings settings;
  settings.wants_help = parsed.wants_help;
  if (settings.wants_help) return settings;
  const auto get = [&](const char* flag) { return parsed.flags[flag].as<std::string>(); };
  settings.selection = {.wanted = wanted_of(parsed.words[0]),
                        .include = repeated(parsed, "include"),
                        .exclude = repeated(parsed, "exclude")};
  settings.repo = parsed.words[1];
  settings.revision = get("revision");
  TITAN_CHECK(!settings.revision.empty(), config, "--revision is empty");
  if (parsed.flags.count("output")) {
    settings.output = get("output");
    TITAN_CHECK(!settings.output.empty(), config, "--output is empty");
  }
  settings.base_url = parsed.flags.count("base-url")
                          ? get("base-url")
                          : environment.get("HF_ENDPOINT").value_or("https://huggingface.co");
  settings.token = token_of(parsed, environment);
  settings.ca_file =
      environment.get("CURL_CA_BUNDLE").value_or(environment.get("SSL_CERT_FILE").value_or(""));
  settings.jobs = static_cast<int>(parse_integer(get("jobs"), "--jobs", 1, 64));
  settings.retries = {
      .retries = static_cast<int>(parse_integer(get("retries"), "--retries", 0, 100)),
      .wait_s = retry_wait(get("retry-wait"))};
  settings.stall_timeout_s =
      static_cast<int>(parse_integer(get("stall-timeout"), "--stall-timeout", 1, 3600));
  settings.is_dry_run = parsed.flags.count("dry-run") > 0;
  settings.is_quiet = parsed.flags.count("quiet") > 0;
  return settings;
}

fs::path default_output(Wanted wanted, const RepoUrls& urls) {
  return fs::path("assets") / (wanted == Wanted::dataset ? "datasets" : "hf") / urls.short_name();
}

}  // namespace titan::core::download
