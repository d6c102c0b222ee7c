#include "core/plugin/compatibility.h"

#include <algorithm>
#include <string_view>
#include <system_error>

#include <titan/error.h>

namespace titan::core {
namespace {

enum class Rule { equal, release_equal, major_equal, family_equal, informative };

struct FieldRule {
  std::string_view field;
  Rule rule;
};

constexpr FieldRule kRules[] = {{"torch", Rule::release_equal},
                                {"cuda", Rule::major_equal},
                                {"sdk", Rule::informative},
                                {"sdk_abi", Rule::equal},
                                {"compiler", Rule::family_equal},
                                {"cxx11_abi", Rule::equal},
                                {"std", Rule::equal},
                                {"arch", Rule::equal},
                                {"sanitizer", Rule::equal},
                                {"build_type", Rule::informative}};

std::string_view up_to(std::string_view text, char end) {
  return text.substr(0, text.find(end));
}

/// The part of a field's text that must be equal: "2.11.0" of "2.11.0+cpu", "13" of "13.0", "gcc"
/// of "gcc 12".
std::string_view significant(Rule rule, std::string_view text) {
  switch (rule) {
    case Rule::equal:
      return text;
    case Rule::release_equal:
      return up_to(text, '+');
    case Rule::major_equal:
      return up_to(text, '.');
    case Rule::family_equal:
      return up_to(text, ' ');
    case Rule::informative:
      return {};
  }
  return text;
}

const char* wording(Rule rule, bool prevents_use) {
  if (!prevents_use) return "allowed";
  if (rule == Rule::major_equal) return "major version must be equal";
  if (rule == Rule::family_equal) return "must be of the same family";
  return "must be equal";
}

/// The folder for -DTitan_ROOT when this program is installed; a build tree has no package.
std::string prefix() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto root = program.parent_path().parent_path();
  if (!error && std::filesystem::exists(root / "lib/cmake/Titan/TitanConfig.cmake", error))
    return root.string();
  return "<prefix>";
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string table(const std::vector<Difference>& differences) {
  size_t field_width = 10, plugin_width = 12, host_width = 13;
  for (const Difference& d : differences) {
    field_width = std::max(field_width, d.field.size());
    plugin_width = std::max(plugin_width, d.plugin.size());
    host_width = std::max(host_width, d.host.size());
  }
  const auto row = [&](const std::string& field, const std::string& plugin,
                       const std::string& host) {
    return "    " + padded(field, field_width + 2) + padded(plugin, plugin_width + 2) +
           padded(host, host_width + 2);
  };
  std::string text = row("", "plugin", "this program");
  text.erase(text.find_last_not_of(' ') + 1);
  for (const Difference& d : differences) text += "\n" + row(d.field, d.plugin, d.host) + d.rule;
  return text;
}

}  // namespace

std::vector<Difference> differences(const Manifest& plugin, const Manifest& host) {
  std::vector<Difference> found;
  for (const auto& [field, rule] : kRules) {
    const std::string_view theirs = plugin.field(field);
    const bool is_torch_free_abi = field == "sdk_abi" && plugin.field("torch") == "none";
    const std::string_view ours = host.field(is_torch_free_abi ? "sdk_abi_torch_free" : field);
    const bool fits_any = theirs == "none" && (field == "torch" || field == "cuda");
    if (theirs == ours || fits_any) continue;
    const bool prevents_use = significant(rule, theirs) != significant(rule, ours);
    found.push_back({std::string(field), std::string(theirs), std::string(ours),
                     wording(rule, prevents_use), prevents_use});
  }
  for (const std::string& header : plugin.uses) {
    const std::string_view theirs = plugin.optional_hash(header), ours = host.optional_hash(header);
    if (theirs == ours && !theirs.empty()) continue;
    const auto shown = [](std::string_view hash) {
      return hash.empty() ? std::string("none") : std::string(hash);
    };
    found.push_back(
        {"titan/" + header + ".h", shown(theirs), shown(ours), wording(Rule::equal, true), true});
  }
  return found;
}

bool is_compatible(const std::vector<Difference>& differences) {
  return std::none_of(differences.begin(), differences.end(),
                      [](const Difference& d) { return d.prevents_use; });
}

std::string summary(const std::vector<Difference>& differences) {
  std::string text;
  for (const Difference& d : differences)
    if (d.prevents_use)
      text += (text.empty() ? "" : ", ") + d.field + " " + d.plugin + " instead of " + d.host;
  return text;
}

void require_compatible(const Manifest& plugin, const Manifest& host,
                        const std::filesystem::path& file) {
  const auto found = differences(plugin, host);
  TITAN_CHECK(is_compatible(found), plugin, "cannot use plugin '", plugin.plugin, "' from ",
              file.string(), "\n  it was built for a different environment than this program:\n",
              table(found),
              "\n  rebuild it against this installation:\n    cmake -S <plugin source> -B build "
              "-DTitan_ROOT=",
              prefix(), " && cmake --build build");
}

}  // namespace titan::core
