#include "actions.h"

#include <algorithm>
#include <ctime>
#include <system_error>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/plugin_lock.h>
#include <titan/program/environment.h>
#include <titan/program/exit_codes.h>
#include <titan/program/shell_word.h>
#include <titan/program/terminal.h>
#include <titan/program/text.h>
#include <titan/program/text_table.h>

#include <titan/files/file.h>

#include "index_access.h"

namespace titan::plugin_index {
namespace {

namespace fs = std::filesystem;

/// The key in --key, which is the key itself or a file; else the one that the index offers.
PublicKey chosen_key(const Request& request, IndexPlace& place, const std::string& address) {
  constexpr int64_t kLargestKey = 4096;
  if (const auto& given = request.options.key) {
    std::error_code error;
    return fs::is_regular_file(*given, error) ? parse_public_key(read_text(*given), *given)
                                              : parse_public_key(*given, "--key");
  }
  const PublicKey offered =
      parse_public_key(place.text(kPublicKeyFile, kLargestKey),
                       "the file " + std::string(kPublicKeyFile) + " of " + address);
  log::warn("the key " + offered.id_text() + " comes from " + address +
            " itself; compare it with what the author publishes elsewhere: " + offered.text());
  return offered;
}

void refuse_other_key(const AddedIndex& known, const PublicKey& key) {
  TITAN_CHECK(known.key == key, plugin, "the index ", known.address, " was added with the key ",
              known.key.id_text(), ", not ", key.id_text(),
              "\n  if its author announced the new key: titan plugin forget ", known.name,
              " && titan plugin add ", shell_word(known.address), " --key ", key.text());
}

bool matches(const IndexedPlugin& plugin, const std::string& word) {
  if (word.empty()) return true;
  const std::string wanted = lower_case(std::string_view(word));
  const auto holds = [&](const std::string& text) {
    return lower_case(std::string_view(text)).find(wanted) != std::string::npos;
  };
  return holds(plugin.name) ||
         std::any_of(plugin.builds.begin(), plugin.builds.end(), [&](const PluginBuild& build) {
           return holds(build.summary) ||
                  std::any_of(build.provides.begin(), build.provides.end(), holds);
         });
}

/// The author's result of the conformance kit, which the key of the index has signed.
std::string conformance_text(const PluginBuild& build) {
  const Value* is_good = build.conformance.find("good");
  if (!is_good || !is_good->is_boolean()) return "-";
  return is_good->as_boolean() ? "passed" : "failed";
}

/// The newest version, and whether it or an older one can be used here.
TextRow search_row(const std::string& index, const IndexedPlugin& plugin, const Request& request) {
  const PluginBuild* newest = nullptr;
  const PluginBuild* fitting = nullptr;
  for (const PluginBuild& build : plugin.builds) {
    if (!newest || !is_older(build.version, newest->version)) newest = &build;
    if (request.files.mismatch(build.built_for).empty() &&
        (!fitting || !is_older(build.version, fitting->version)))
      fitting = &build;
  }
  if (!newest) return {index, plugin.name, "-", "-", "no version", "-", ""};
  std::string provides;
  for (const std::string& one : newest->provides) provides += (provides.empty() ? "" : " ") + one;
  std::string fits = "yes";
  if (!fitting)
    fits = "no: " + request.files.mismatch(newest->built_for);
  else if (fitting->version != newest->version)
    fits = "version " + fitting->version;
  return {index,          plugin.name, newest->version, provides, fits, conformance_text(*newest),
          newest->summary};
}

}  // namespace

fs::path chosen_lock(const PluginOptions& options) {
  TITAN_CHECK(!options.config || !options.lock, config,
              "--config and --lock both name the lock file; leave one of them out");
  if (options.lock) return *options.lock;
  TITAN_CHECK(options.config, config,
              "name the configuration that uses the plugins: --config FILE.toml");
  std::error_code error;
  TITAN_CHECK(fs::is_regular_file(*options.config, error), config, "--config ",
              options.config->string(), " is not a file");
  return lock_file_of(*options.config);
}

int add_index(const Request& request) {
  TITAN_CHECK(request.words.size() == 1, config, "titan plugin add takes one URL or folder");
  const std::string address = complete_address(request.words[0]);
  IndexStore store(store_file(Environment::of_process()));
  const std::unique_ptr<IndexPlace> place = open_place(address);
  const PublicKey key = chosen_key(request, *place, address);
  if (const AddedIndex* known = store.find_address(address)) {
    refuse_other_key(*known, key);
    log::info("the index '" + known->name + "' was added before");
    return kExitDone;
  }
  const Index index =
      verified_index(*place, {.name = "", .address = address, .key = key}, std::time(nullptr));
  if (const AddedIndex* other = store.find(index.name))
    fail(ErrorKind::plugin, "another index is named '", index.name, "': ", other->address,
         "\n  to replace it: titan plugin forget ", index.name, " && titan plugin add ",
         shell_word(address), " --key ", key.text());
  store.put({.name = index.name, .address = address, .key = key, .counter = index.counter});
  log::info("added the index '" + index.name + "' with " + std::to_string(index.plugins.size()) +
            (index.plugins.size() == 1 ? " plugin" : " plugins") + "; pinned its key " +
            key.id_text());
  return kExitDone;
}

int forget_index(const Request& request) {
  TITAN_CHECK(request.words.size() == 1, config, "titan plugin forget takes the name of an index");
  IndexStore store(store_file(Environment::of_process()));
  TITAN_CHECK(store.find(request.words[0]), config, "there is no index '", request.words[0],
              "'; see: titan plugin list");
  store.remove(request.words[0]);
  log::info("forgot the index '" + request.words[0] + "'; installed plugins stay");
  return kExitDone;
}

int list_added(const Request& request) {
  TITAN_CHECK(request.words.empty(), config, "titan plugin list takes no word");
  const IndexStore store(store_file(Environment::of_process()));
  std::vector<TextRow> rows{{"index", "key", "address"}};
  for (const AddedIndex& index : store.indexes())
    rows.push_back({index.name, index.key.id_text(), index.address});
  print(store.indexes().empty() ? "no index was added\n" : text_table(rows));
  if (!request.options.config && !request.options.lock) return kExitDone;
  rows = {{"plugin", "version", "file", "index"}};
  for (const LockedPlugin& plugin : read_plugin_lock(chosen_lock(request.options)).plugins)
    rows.push_back({plugin.name, plugin.version, plugin.file.string(), plugin.index});
  print("\n" + text_table(rows));
  return kExitDone;
}

int search(const Request& request) {
  TITAN_CHECK(request.words.size() <= 1, config, "titan plugin search takes at most one word");
  IndexStore store(store_file(Environment::of_process()));
  TITAN_CHECK(!store.indexes().empty(), config,
              "no index was added; add one: titan plugin add URL --key KEY");
  std::vector<TextRow> rows{
      {"index", "plugin", "version", "provides", "fits here", "conformance", "what it is"}};
  for (const AddedIndex& added : std::vector<AddedIndex>(store.indexes())) {
    if (request.options.index && added.name != *request.options.index) continue;
    const Index index = read_index(*open_place(added.address), added, store);
    for (const IndexedPlugin& plugin : index.plugins)
      if (matches(plugin, request.words.empty() ? "" : request.words[0]))
        rows.push_back(search_row(added.name, plugin, request));
  }
  print(rows.size() == 1 ? "no plugin was found\n" : text_table(rows));
  return kExitDone;
}

}  // namespace titan::plugin_index
