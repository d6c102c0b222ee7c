// An index of plugins: index.json, as authors publish it. Reads, checks and writes its text. Used
// by all actions of `titan plugin`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <titan/plugin_files.h>
#include <titan/value.h>

#include "minisign.h"

namespace titan::plugin_index {

constexpr const char* kIndexFile = "index.json";
constexpr const char* kIndexSignature = "index.json.minisig";
constexpr const char* kPublicKeyFile = "minisign.pub";

/// One file of a version of a plugin.
struct PluginBuild {
  std::string version;
  std::vector<std::string> provides;  ///< "optimizer:acme/signsgd"
  std::string summary;                ///< of the first component; may be empty
  /// The fields of the manifest that decide whether a program can load the file.
  Value built_for;
  std::string url;  ///< relative to the index, or https://...
  std::string sha256;
  int64_t size = 0;
  std::string signature;   ///< the text of the .minisig file
  Value conformance = {};  ///< result of the conformance kit, if the author gives one
};

struct IndexedPlugin {
  std::string name;
  std::vector<PluginBuild> builds;  ///< in the order of publication
};

struct Index {
  std::string name;
  int64_t counter = 0;  ///< larger in each publication, so that an old index is recognised
  std::optional<int64_t> expires;  ///< seconds since 1970
  std::vector<PublicKey> keys;     ///< that may sign the plugin files
  std::vector<IndexedPlugin> plugins;

  const IndexedPlugin* find(std::string_view plugin) const;
};

/// Throws a plugin Error that names `origin` and the member that is wrong. Names, versions and
/// addresses are checked, since they become names of files.
Index parse_index(std::string_view text, const std::string& origin);
std::string to_text(const Index& index);

/// Whether `text` can be the name of an index or plugin, or a version: letters, digits and ._+-,
/// not first a dot, at most 100 characters.
bool is_plain_name(std::string_view text);

/// The trusted comments, which tie a signature to what it is for.
std::string comment_of(const Index& index);
std::string comment_of(const std::string& plugin, const PluginBuild& build);

/// The build that a plugin file's manifest describes, without address, hash and signature.
PluginBuild described_build(const Value& manifest);

/// Whether version `a` is older than `b`: numbers between dots compare as numbers.
bool is_older(std::string_view a, std::string_view b);

}  // namespace titan::plugin_index
