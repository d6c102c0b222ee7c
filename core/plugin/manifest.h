// A plugin's manifest: NUL-separated `key=value` text in the ELF section `.titan_plugin`.
// titan_add_plugin() writes it; this header reads it from the file before the plugin is opened.
// `readelf -p .titan_plugin FILE` shows it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace titan::core {

struct Provided {
  std::string kind;
  std::string name;  ///< of a flavor: "<model>/<flavor>"
  friend bool operator==(const Provided&, const Provided&) = default;
};

/// Keys: manifest, plugin, version, provides, sdk, sdk_abi, torch, cxx11_abi, compiler, std, arch,
/// cuda, cuda_archs, sanitizer, build_type; summary:<kind>:<name>, what `titan list` says of it;
/// sdk_optional, "name:hash name:hash" of the sdk's optional headers; for information only:
/// built_by, git.
struct Manifest {
  std::vector<std::pair<std::string, std::string>> fields;  ///< as written
  std::string plugin;
  std::string version;
  std::vector<Provided> provides;  ///< from "kind:name kind:name"
  /// The optional headers of the sdk that its code includes (TITAN_OPTIONAL_HEADER), sorted.
  std::vector<std::string> uses;

  /// The field's text; empty when absent.
  std::string_view field(std::string_view key) const;
  /// One line on the component `name`, the text it is registered with; empty if the manifest has
  /// none.
  std::string_view summary(std::string_view kind, std::string_view name) const;
  /// The hash of an optional header, out of sdk_optional; empty when there is no such header.
  std::string_view optional_hash(std::string_view header) const;
};

/// Throws a plugin Error naming the file and the fault: not an ELF file, 32-bit, truncated, no
/// section, not text, unknown manifest version, a missing key.
Manifest read_manifest(const std::filesystem::path& file);
/// The same from the section's bytes; messages name `origin`.
Manifest parse_manifest(std::string_view bytes, const std::string& origin);
/// The manifest of this program: the same fields, made by the same build.
const Manifest& host_manifest();

}  // namespace titan::core
