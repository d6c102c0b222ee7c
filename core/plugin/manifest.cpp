#include "core/plugin/manifest.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "core/plugin/built_in.h"
#include "core/plugin/elf_file.h"

namespace titan::core {
namespace {

constexpr std::string_view kSection = ".titan_plugin";
constexpr std::string_view kUsesSection = ".titan_uses";
constexpr std::string_view kKnownVersion = "1";
constexpr size_t kLargest = 64 * 1024;  // bytes; a larger section is not a manifest

constexpr std::string_view kRequired[] = {"manifest",   "plugin",    "version",   "provides",
                                          "sdk",        "sdk_abi",   "torch",     "cxx11_abi",
                                          "compiler",   "std",       "arch",      "cuda",
                                          "cuda_archs", "sanitizer", "build_type"};

/// The first byte that a manifest cannot hold; absent when it is text.
std::optional<size_t> find_control_byte(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (byte != 0 && (byte < 0x20 || byte == 0x7f)) return i;
  }
  return std::nullopt;
}

std::vector<Provided> parse_provides(std::string_view text, const std::string& origin) {
  std::vector<Provided> provides;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const size_t colon = word.find(':');
    TITAN_CHECK(colon != std::string_view::npos && colon > 0 && colon + 1 < word.size(), plugin,
                "the manifest of ", origin, " provides ", in_quotes(word),
                ", which is not of the form <kind>:<name>");
    Provided provided{std::string(word.substr(0, colon)), std::string(word.substr(colon + 1))};
    const size_t slash = provided.name.rfind('/');
    TITAN_CHECK(provided.kind != "flavor" ||
                    (slash != std::string::npos && slash > 0 && slash + 1 < provided.name.size()),
                plugin, "the manifest of ", origin, " provides ", in_quotes(word),
                ", which is not of the form flavor:<model>/<flavor>");
    TITAN_CHECK(std::find(provides.begin(), provides.end(), provided) == provides.end(), plugin,
                "the manifest of ", origin, " provides ", in_quotes(word), " twice");
    provides.push_back(std::move(provided));
  }
  return provides;
}

/// Names, each ended by zeros; every separately compiled source file repeats them.
std::vector<std::string> parse_uses(std::string_view bytes, const std::string& origin) {
  std::set<std::string> names;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    const std::string_view name = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    TITAN_CHECK(std::all_of(name.begin(), name.end(),
                            [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; }),
                plugin, "the section ", kUsesSection, " of ", origin, " holds ", in_quotes(name),
                ", which is not the name of a header");
    if (!name.empty()) names.emplace(name);
  }
  return {names.begin(), names.end()};
}

}  // namespace

std::string_view Manifest::optional_hash(std::string_view header) const {
  std::string_view entries = field("sdk_optional");
  while (!entries.empty()) {
    const std::string_view entry = entries.substr(0, entries.find(' '));
    entries.remove_prefix(std::min(entry.size() + 1, entries.size()));
    const size_t colon = std::min(entry.find(':'), entry.size());
    if (entry.substr(0, colon) == header) return entry.substr(std::min(colon + 1, entry.size()));
  }
  return {};
}

std::string_view Manifest::summary(std::string_view kind, std::string_view name) const {
  return field("summary:" + std::string(kind) + ":" + std::string(name));
}

std::string_view Manifest::field(std::string_view key) const {
  for (const auto& [name, text] : fields)
    if (name == key) return text;
  return {};
}

Manifest parse_manifest(std::string_view bytes, const std::string& origin) {
  TITAN_CHECK(bytes.size() <= kLargest, plugin, "the manifest of ", origin, " has ", bytes.size(),
              " bytes, the limit is ", kLargest);
  const auto control = find_control_byte(bytes);
  TITAN_CHECK(!control, plugin, "the manifest of ", origin, " is not text: byte ", *control,
              " has the value ", static_cast<int>(static_cast<unsigned char>(bytes[*control])));

  Manifest manifest;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    TITAN_CHECK(equals != std::string_view::npos && equals > 0, plugin, "the manifest of ", origin,
                " holds ", in_quotes(line), ", which is not of the form key=value");
    const std::string_view key = line.substr(0, equals);
    for (const auto& [name, text] : manifest.fields)
      TITAN_CHECK(name != key, plugin, "the manifest of ", origin, " has the key ", in_quotes(key),
                  " twice");
    manifest.fields.emplace_back(key, line.substr(equals + 1));
  }

  const auto has = [&](std::string_view key) {
    return std::any_of(manifest.fields.begin(), manifest.fields.end(),
                       [&](const auto& field) { return field.first == key; });
  };
  TITAN_CHECK(!has("manifest") || manifest.field("manifest") == kKnownVersion, plugin,
              "the manifest of ", origin, " has version ", printable(manifest.field("manifest")),
              ", this program reads version ", kKnownVersion,
              "; rebuild the plugin against this installation");
  std::string missing;
  for (std::string_view key : kRequired)
    if (!has(key)) missing += (missing.empty() ? "" : ", ") + std::string(key);
  TITAN_CHECK(missing.empty(), plugin, "the manifest of ", origin, " lacks: ", missing);

  manifest.plugin = manifest.field("plugin");
  manifest.version = manifest.field("version");
  manifest.provides = parse_provides(manifest.field("provides"), origin);
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& file) {
  const ElfFile elf(file);
  const auto bytes = elf.section(kSection);
  TITAN_CHECK(bytes, plugin, "cannot read plugin file ", file.string(), ": it has no section ",
              kSection, "; plugins are built with titan_add_plugin()");
  Manifest manifest = parse_manifest(*bytes, file.string());
  manifest.uses = parse_uses(elf.section(kUsesSection).value_or(""), file.string());
  return manifest;
}

const Manifest& host_manifest() {
  static const Manifest kManifest =
      parse_manifest(std::string_view(kHostManifestText, kHostManifestSize), "this program");
  return kManifest;
}

}  // namespace titan::core
