// titan plugin pack: makes or extends an index from built plugin files. For authors.
#include <algorithm>
#include <ctime>
#include <system_error>

#include <titan/error.h>
#include <titan/files/checksum.h>
#include <titan/files/file.h>
#include <titan/log.h>
#include <titan/program/exit_codes.h>
#include <titan/shown_text.h>

#include "actions.h"
#include "index.h"
#include "signing_program.h"

namespace titan::plugin_index {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecondsPerDay = 24 * 60 * 60;

Index existing_index(const fs::path& folder, const std::optional<std::string>& name) {
  const fs::path file = folder / kIndexFile;
  std::error_code error;
  if (fs::exists(file, error)) {
    Index index = parse_index(read_text(file), file.string());
    TITAN_CHECK(!name || index.name == *name, config, file.string(), " is named '", index.name,
                "', not '", name.value_or(""), "'; leave --name out");
    return index;
  }
  TITAN_CHECK(name, config, "a new index needs a name: --name NAME");
  TITAN_CHECK(is_plain_name(*name), config, "--name ", in_quotes(*name),
              " must be letters, digits and ._+-, and not begin with a dot");
  return {.name = *name};
}

/// Adds the results of the conformance kit to the files that they are about.
void add_results(const std::vector<fs::path>& results, Index& index) {
  for (const fs::path& file : results) {
    const Value result = read_json(file);
    const Value* sha256 = result.find("sha256");
    const Value* is_good = result.find("good");
    TITAN_CHECK(sha256 && sha256->is_string() && is_good && is_good->is_boolean(), config,
                file.string(), " is not a result of titan check --conformance --json");
    PluginBuild* about = nullptr;
    for (IndexedPlugin& plugin : index.plugins)
      for (PluginBuild& build : plugin.builds)
        if (build.sha256 == sha256->as_string()) about = &build;
    TITAN_CHECK(about, config, file.string(), " is about a file with the SHA-256 ",
                in_quotes(sha256->as_string()), ", which is not in the index");
    about->conformance = Value::map({{"good", *is_good}});
    for (const char* member : {"kit", "seed", "counts"})
      if (const Value* value = result.find(member)) about->conformance[member] = *value;
  }
}

IndexedPlugin& row_of(Index& index, const std::string& plugin) {
  for (IndexedPlugin& row : index.plugins)
    if (row.name == plugin) return row;
  return index.plugins.emplace_back(IndexedPlugin{.name = plugin});
}

/// Copies and signs one plugin file; returns whether the index changed.
bool pack_file(const fs::path& file, const fs::path& folder, const fs::path& secret_key,
               const PluginFiles& files, Index& index) {
  const Value manifest = files.manifest(file);
  const std::string& name = manifest.at("plugin").as_string();
  PluginBuild build = described_build(manifest);
  TITAN_CHECK(is_plain_name(name) && is_plain_name(build.version), plugin, file.string(),
              " has the name ", in_quotes(name), " and the version ", in_quotes(build.version),
              "; an index takes letters, digits and ._+-");
  build.sha256 = sha256_of_file(file);
  IndexedPlugin& row = row_of(index, name);
  for (const PluginBuild& other : row.builds) {
    if (other.sha256 == build.sha256) return false;
    TITAN_CHECK(other.version != build.version || other.built_for != build.built_for, plugin,
                file.string(), " differs from the file of version ", build.version,
                " in the index; raise VERSION of titan_add_plugin()");
  }
  build.url =
      name + "/" + name + "-" + build.version + "-" + build.sha256.substr(0, 8) + ".plugin.so";
  const fs::path copy = folder / build.url;
  const std::string content = read_text(file);
  build.size = static_cast<int64_t>(content.size());
  std::error_code error;
  fs::create_directories(copy.parent_path(), error);
  TITAN_CHECK(!error, io, "cannot make the folder ", copy.parent_path().string(), ": ",
              error.message());
  write_text_atomically(copy, content);
  const fs::path signature = copy.string() + ".minisig";
  sign_file(copy, secret_key, comment_of(name, build), signature);
  build.signature = read_text(signature);
  row.builds.push_back(std::move(build));
  return true;
}

}  // namespace

int pack(const Request& request) {
  const PluginOptions& options = request.options;
  TITAN_CHECK(!request.words.empty(), config, "titan plugin pack takes built plugin files");
  TITAN_CHECK(options.output && options.secret_key, config,
              "titan plugin pack needs --output FOLDER and --secret_key FILE; make a key: minisign "
              "-G -s FILE -p minisign.pub");
  const fs::path& folder = *options.output;
  Index index = existing_index(folder, options.name);
  std::error_code error;
  fs::create_directories(folder, error);
  TITAN_CHECK(!error, io, "cannot make the folder ", folder.string(), ": ", error.message());

  const fs::path public_file = folder / kPublicKeyFile;
  if (!fs::exists(public_file, error)) write_public_key(*options.secret_key, public_file);
  const PublicKey key = parse_public_key(read_text(public_file), public_file.string());
  if (std::find(index.keys.begin(), index.keys.end(), key) == index.keys.end())
    index.keys.push_back(key);
  size_t num_packed = 0;
  for (const std::string& word : request.words)
    num_packed += pack_file(word, folder, *options.secret_key, request.files, index);
  add_results(options.conformance, index);

  ++index.counter;
  index.expires.reset();
  if (options.expires) index.expires = std::time(nullptr) + *options.expires * kSecondsPerDay;
  const std::string text = to_text(index);
  // signed under another name: until both files are replaced, readers find a pair that fits or
  // refuse
  const fs::path next = folder / (std::string(kIndexFile) + ".next");
  write_text_atomically(next, text);
  const fs::path signature = folder / (std::string(kIndexSignature) + ".next");
  sign_file(next, *options.secret_key, comment_of(index), signature);
  require_signed(text, parse_signature(read_text(signature), signature.string()), key,
                 next.string());
  rename_file(signature, folder / kIndexSignature);
  rename_file(next, folder / kIndexFile);
  log::info("the index '" + index.name + "' in " + folder.string() + " has " +
            std::to_string(num_packed) + " new " + (num_packed == 1 ? "file" : "files") +
            " and the counter " + std::to_string(index.counter) + "; readers add it with --key " +
            key.text());
  return kExitDone;
}

}  // namespace titan::plugin_index
