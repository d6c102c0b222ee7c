#include "install.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <titan/error.h>
#include <titan/files/checksum.h>
#include <titan/log.h>
#include <titan/program/environment.h>
#include <titan/program/exit_codes.h>
#include <titan/program/shell_word.h>
#include <titan/suggest.h>

namespace titan::plugin_index {
namespace {

namespace fs = std::filesystem;

/// "NAME" or "NAME@VERSION".
struct WantedPlugin {
  std::string name, version;
};

WantedPlugin parse_wanted(const std::string& word) {
  const size_t at = std::min(word.find('@'), word.size());
  WantedPlugin wanted{word.substr(0, at), word.substr(std::min(at + 1, word.size()))};
  TITAN_CHECK(is_plain_name(wanted.name) && (at == word.size() || is_plain_name(wanted.version)),
              config, "'", word, "' is neither NAME nor NAME@VERSION");
  return wanted;
}

/// The indexes of a call, each read once.
class OpenIndexes {
 public:
  OpenIndexes() : store_(store_file(Environment::of_process())) {}

  const std::vector<AddedIndex>& added() const { return store_.indexes(); }
  const Index& index(const AddedIndex& added) {
    for (const auto& [name, index] : open_)
      if (name == added.name) return *index;
    Index index = read_index(*open_place(added.address), AddedIndex(added), store_);
    return *open_.emplace_back(added.name, std::make_unique<Index>(std::move(index))).second;
  }

 private:
  IndexStore store_;
  std::vector<std::pair<std::string, std::unique_ptr<Index>>> open_;
};

/// The only index, among those that `only` allows, that has the plugin.
AddedIndex index_with(const std::string& plugin, const std::optional<std::string>& only,
                      OpenIndexes& indexes) {
  TITAN_CHECK(!indexes.added().empty(), config,
              "no index was added; add one: titan plugin add URL --key KEY");
  std::vector<AddedIndex> found;
  std::vector<std::string> names;
  for (const AddedIndex& added : std::vector<AddedIndex>(indexes.added())) {
    if (only && added.name != *only) continue;
    const Index& index = indexes.index(added);
    if (index.find(plugin)) found.push_back(added);
    for (const IndexedPlugin& one : index.plugins) names.push_back(one.name);
  }
  const std::string hint = did_you_mean(plugin, names);
  TITAN_CHECK(!found.empty(), plugin, "no index has a plugin '", plugin, "'",
              hint.empty() ? "" : "; ", hint, "; see: titan plugin search");
  TITAN_CHECK(found.size() == 1, plugin, "the indexes '", found[0].name, "' and '",
              found.size() > 1 ? found[1].name : "", "' both have a plugin '", plugin,
              "'; choose one by --index");
  return found[0];
}

/// The newest build that fits this program, of the wanted version if there is one.
const PluginBuild& fitting_build(const IndexedPlugin& plugin, const std::string& version,
                                 const Request& request, const fs::path& lock) {
  const PluginBuild* chosen = nullptr;
  const PluginBuild* other = nullptr;
  std::string reasons;
  bool has_version = false;
  for (const PluginBuild& build : plugin.builds) {
    const bool is_wanted = version.empty() || build.version == version;
    has_version |= is_wanted;
    const std::string mismatch = request.files.mismatch(build.built_for);
    if (is_wanted && !mismatch.empty())
      reasons += "\n    " + build.version + ": built with " + mismatch;
    if (!mismatch.empty()) continue;
    const PluginBuild*& best = is_wanted ? chosen : other;
    if (!best || !is_older(build.version, best->version)) best = &build;
  }
  if (chosen) return *chosen;
  const std::string remedy =
      other ? "\n  version " + other->version + " can: titan plugin install " + plugin.name + "@" +
                  other->version + " --lock " + shell_word(lock.string())
            : "\n  build it from its source against this installation, or ask its author for such "
              "a build";
  if (!has_version)
    fail(ErrorKind::plugin, "plugin '", plugin.name, "' has no version ", version, remedy);
  fail(ErrorKind::plugin, "this program cannot load plugin '", plugin.name, "':", reasons, remedy);
}

void require_same(const PluginBuild& build, const std::string& name, const Value& manifest,
                  const std::string& origin) {
  const PluginBuild described = described_build(manifest);
  TITAN_CHECK(manifest.at("plugin") == Value(name) && described.version == build.version &&
                  described.provides == build.provides && described.built_for == build.built_for,
              plugin, "the manifest inside ", origin,
              " is not what the index says of it: it is version ", described.version, " of '",
              manifest.at("plugin").as_string(), "'; tell the author of the index");
}

bool has_hash(const fs::path& file, const std::string& sha256) {
  std::error_code error;
  return fs::is_regular_file(file, error) && sha256_of_file(file) == sha256;
}

/// The build that a lock file names; the index may list newer ones.
ChosenBuild locked_build(const LockedPlugin& locked, const fs::path& lock, OpenIndexes& indexes) {
  const auto& all = indexes.added();
  const auto added = std::find_if(
      all.begin(), all.end(), [&](const AddedIndex& one) { return one.address == locked.index; });
  TITAN_CHECK(
      added != all.end(), plugin, "plugin '", locked.name, "' of ", lock.string(),
      " comes from the index ", locked.index,
      ", which was not added\n  add it with the key that its author publishes: titan plugin add ",
      shell_word(locked.index), " --key KEY");
  const AddedIndex from = *added;
  const Index& index = indexes.index(from);
  if (const IndexedPlugin* plugin = index.find(locked.name))
    for (const PluginBuild& build : plugin->builds)
      if (build.version == locked.version && build.sha256 == locked.sha256)
        return {from, index.keys, locked.name, build};
  fail(ErrorKind::plugin, "the index ", locked.index, " no longer has the file of plugin '",
       locked.name, "' ", locked.version, " that ", lock.string(),
       " lists\n  take its newest version: titan plugin install ", locked.name, " --lock ",
       shell_word(lock.string()));
}

std::vector<ChosenBuild> choose(const Request& request, const fs::path& lock,
                                const PluginLock& content) {
  OpenIndexes indexes;
  std::vector<ChosenBuild> chosen;
  if (request.words.empty())
    for (const LockedPlugin& locked : content.plugins)
      if (!has_hash(lock.parent_path() / locked.file, locked.sha256))
        chosen.push_back(locked_build(locked, lock, indexes));
  for (const std::string& word : request.words) {
    const WantedPlugin wanted = parse_wanted(word);
    const AddedIndex added = index_with(wanted.name, request.options.index, indexes);
    const Index& index = indexes.index(added);
    const PluginBuild& build =
        fitting_build(*index.find(wanted.name), wanted.version, request, lock);
    const LockedPlugin* before = content.find(wanted.name);
    if (!before || before->sha256 != build.sha256 ||
        !has_hash(lock.parent_path() / before->file, build.sha256))
      chosen.push_back({added, index.keys, wanted.name, build});
  }
  return chosen;
}

/// Removes an installed file, unless another lock file of the folder lists it.
void remove_unlisted(const fs::path& folder, const LockedPlugin& plugin) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".lock") continue;
    try {
      for (const LockedPlugin& other : read_plugin_lock(entry->path()).plugins)
        if (other.file == plugin.file) return;
    } catch (const Error&) {
      // the lock file of another program
    }
  }
  fs::remove(folder / plugin.file, error);
  fs::remove(signature_file(folder / plugin.file), error);
  fs::remove(folder / kInstallFolder, error);  // only if it is empty
}

}  // namespace

fs::path signature_file(const fs::path& file) {
  return file.string() + ".minisig";
}

BroughtPlugin bring(const ChosenBuild& chosen, const fs::path& folder, const PluginFiles& files) {
  const PluginBuild& build = chosen.build;
  const std::string origin = "the file of plugin '" + chosen.plugin + "' " + build.version +
                             " of the index " + chosen.added.address;
  const Signature signature = parse_signature(build.signature, origin);
  const auto key = std::find_if(chosen.keys.begin(), chosen.keys.end(),
                                [&](const PublicKey& one) { return one.id == signature.key_id; });
  TITAN_CHECK(key != chosen.keys.end(), plugin, origin, " is signed by the key ",
              signature.key_id_text(), ", which is not a key of this index; tell its author");

  const fs::path relative = fs::path(kInstallFolder) / (chosen.plugin + "-" + build.version + "-" +
                                                        build.sha256.substr(0, 8) + ".plugin.so");
  BroughtPlugin brought{{.name = chosen.plugin,
                         .version = build.version,
                         .file = relative,
                         .sha256 = build.sha256,
                         .index = chosen.added.address,
                         .key = key->text()},
                        {}};
  auto file = std::make_unique<NewFile>(folder / relative);
  open_place(chosen.added.address)->fetch(build.url, build.size, *file);
  TITAN_CHECK(file->size() == build.size, plugin, origin, " has ", file->size(),
              " bytes, the index says ", build.size, "; nothing was installed");
  const std::string hash = sha256_of_file(file->path());
  TITAN_CHECK(hash == build.sha256, plugin, origin, " has the SHA-256 ", hash, ", the index says ",
              build.sha256, "; nothing was installed");
  require_file_signed(file->path(), signature, *key, origin);
  const std::string comment = comment_of(chosen.plugin, build);
  TITAN_CHECK(signature.comment == comment, plugin, origin, " was signed as '", signature.comment,
              "', the index offers it as '", comment, "'; nothing was installed");
  require_same(build, chosen.plugin, files.manifest(file->path()), origin);
  auto signed_by = std::make_unique<NewFile>(signature_file(folder / relative));
  signed_by->append(build.signature);
  signed_by->publish();
  file->publish();
  brought.files.push_back(std::move(file));
  brought.files.push_back(std::move(signed_by));
  return brought;
}

int install(const Request& request) {
  const fs::path lock = fs::absolute(chosen_lock(request.options)).lexically_normal();
  std::error_code error;
  PluginLock content;
  if (fs::exists(lock, error)) content = read_plugin_lock(lock);
  TITAN_CHECK(!request.words.empty() || fs::exists(lock, error), config,
              "name the plugins to install: ", lock.string(), " does not exist yet");
  const std::vector<ChosenBuild> chosen = choose(request, lock, content);

  std::vector<BroughtPlugin> brought;
  std::vector<LockedPlugin> replaced;
  for (const ChosenBuild& build : chosen)
    brought.push_back(bring(build, lock.parent_path(), request.files));
  for (const BroughtPlugin& plugin : brought) {
    if (const LockedPlugin* before = content.find(plugin.locked.name)) replaced.push_back(*before);
    std::erase_if(content.plugins,
                  [&](const LockedPlugin& one) { return one.name == plugin.locked.name; });
    content.plugins.push_back(plugin.locked);
  }
  if (!brought.empty()) write_plugin_lock(lock, content);
  for (const BroughtPlugin& plugin : brought)
    for (const auto& file : plugin.files) file->keep();
  for (const LockedPlugin& before : replaced) remove_unlisted(lock.parent_path(), before);
  for (const BroughtPlugin& plugin : brought)
    log::info("installed plugin '" + plugin.locked.name + "' " + plugin.locked.version + " as " +
              (lock.parent_path() / plugin.locked.file).string());
  if (brought.empty())
    log::info(request.words.empty() ? "every plugin of " + lock.string() + " is installed"
                                    : "installed before");
  return kExitDone;
}

int remove_plugin(const Request& request) {
  TITAN_CHECK(request.words.size() == 1, config, "titan plugin remove takes the name of a plugin");
  const fs::path lock = fs::absolute(chosen_lock(request.options)).lexically_normal();
  PluginLock content = read_plugin_lock(lock);
  const LockedPlugin* found = content.find(request.words[0]);
  TITAN_CHECK(found, config, lock.string(), " lists no plugin '", request.words[0], "'");
  const LockedPlugin removed = *found;
  std::erase(content.plugins, removed);
  write_plugin_lock(lock, content);
  remove_unlisted(lock.parent_path(), removed);
  log::info("removed plugin '" + removed.name + "' " + removed.version);
  return kExitDone;
}

}  // namespace titan::plugin_index
