#include "settings.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/program/text.h>

namespace titan::download {
namespace {

namespace fs = std::filesystem;

Wanted wanted_of(const std::string& word) {
  if (word == "tokenizer") return Wanted::tokenizer;
  if (word == "model") return Wanted::model;
  TITAN_CHECK(word == "dataset", config,
              "titan download fetches a tokenizer, a dataset or a model, not '", word,
              "'; see: titan download --help");
  return Wanted::dataset;
}

/// The token that the hub's own programs stored.
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

std::string token_of(const DownloadOptions& options, const Environment& environment) {
  std::string token(trimmed(options.token.value_or(environment.get("HF_TOKEN").value_or(""))));
  TITAN_CHECK(!token.empty() || !options.token, config, "--token is empty");
  if (token.empty()) token = trimmed(stored_token(environment));
  // messages must not show the token
  TITAN_CHECK(std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; }),
              config,
              "the token holds a space or a character outside ASCII; look at --token, "
              "HF_TOKEN or the token file");
  return token;
}

}  // namespace

Settings settings_of(const DownloadOptions& options, const std::vector<std::string>& words,
                     const Environment& environment) {
  Settings settings;
  settings.selection = {
      .wanted = wanted_of(words[0]), .include = options.include, .exclude = options.exclude};
  settings.repo = words[1];
  TITAN_CHECK(!options.revision.empty(), config, "--revision is empty");
  settings.output = options.output.value_or("");
  TITAN_CHECK(!options.output || !settings.output.empty(), config, "--output is empty");
  settings.base_url =
      options.base_url.value_or(environment.get("HF_ENDPOINT").value_or("https://huggingface.co"));
  settings.token = token_of(options, environment);
  settings.ca_file =
      environment.get("CURL_CA_BUNDLE").value_or(environment.get("SSL_CERT_FILE").value_or(""));
  return settings;
}

fs::path default_output(Wanted wanted, const RepoUrls& urls) {
  return fs::path("assets") / (wanted == Wanted::dataset ? "datasets" : "hf") / urls.short_name();
}

}  // namespace titan::download
