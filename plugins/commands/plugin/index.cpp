#include "index.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

#include <titan/error.h>
#include <titan/files/checksum.h>
#include <titan/shown_text.h>

namespace titan::plugin_index {
namespace {

constexpr int64_t kIndexSchema = 1;
constexpr int64_t kLargestFile = int64_t{4} << 30;
constexpr size_t kLongestName = 100;
/// The fields of a manifest that a program compares with its own.
constexpr const char* kBuiltFor[] = {"sdk", "sdk_abi",   "torch", "cuda",      "compiler",
                                     "std", "cxx11_abi", "arch",  "sanitizer", "build_type"};

/// Reads members of one object; every mistake names the place.
class Members {
 public:
  Members(const Value& value, std::string place) : value_(value), place_(std::move(place)) {
    TITAN_CHECK(value.is_map(), plugin, place_, " is not an object");
  }

  const std::string& text(const char* name) const {
    const Value* member = value_.find(name);
    TITAN_CHECK(member && member->is_string(), plugin, place_, " has no text '", name, "'");
    return member->as_string();
  }
  int64_t integer(const char* name, int64_t lowest, int64_t highest) const {
    const Value* member = value_.find(name);
    TITAN_CHECK(member && member->is_integer(), plugin, place_, " has no integer '", name, "'");
    const int64_t number = member->as_integer();
    TITAN_CHECK(number >= lowest && number <= highest, plugin, place_, " has ", name, " = ", number,
                ", which is not from ", lowest, " to ", highest);
    return number;
  }
  const Value::List& list(const char* name) const {
    const Value* member = value_.find(name);
    TITAN_CHECK(member && member->is_list(), plugin, place_, " has no list '", name, "'");
    return member->as_list();
  }
  std::string name(const char* member) const {
    const std::string& found = text(member);
    TITAN_CHECK(is_plain_name(found), plugin, place_, " has the ", member, " ", in_quotes(found),
                ", which must be letters, digits and ._+-, and not begin with a dot");
    return found;
  }
  const Value* find(const char* name) const { return value_.find(name); }
  const std::string& place() const { return place_; }

 private:
  const Value& value_;
  std::string place_;
};

bool is_web_address(std::string_view url) {
  return url.starts_with("https://") || url.starts_with("http://");
}

/// A relative address stays below the folder of the index, on disk and on a server.
bool is_harmless_path(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  for (const char c : path)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '\\' || c == ':' || c == '?' ||
        c == '#' || c == '%')
      return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

Value parse_built_for(const Members& row) {
  const Value* given = row.find("built_for");
  TITAN_CHECK(given, plugin, row.place(), " has no object 'built_for'");
  const Members fields(*given, row.place() + ", built_for");
  Value built_for = Value::map();
  for (const char* name : kBuiltFor) built_for[name] = fields.text(name);
  built_for["sdk_optional"] = fields.text("sdk_optional");
  built_for["uses"] = Value::list();
  for (const Value& header : fields.list("uses")) {
    TITAN_CHECK(header.is_string(), plugin, fields.place(),
                " has an item of 'uses' that is no text");
    built_for["uses"].as_list().push_back(header);
  }
  return built_for;
}

PluginBuild parse_build(const Value& value, const std::string& place) {
  const Members row(value, place);
  PluginBuild build{.version = row.name("version"),
                    .summary = row.text("summary"),
                    .built_for = parse_built_for(row),
                    .url = row.text("url"),
                    .sha256 = row.text("sha256"),
                    .size = row.integer("size", 1, kLargestFile),
                    .signature = row.text("signature")};
  for (const Value& provided : row.list("provides")) {
    TITAN_CHECK(provided.is_string() && provided.as_string().find(':') != std::string::npos, plugin,
                place, " has an item of 'provides' that is not <kind>:<name>");
    build.provides.push_back(provided.as_string());
  }
  TITAN_CHECK(is_sha256(build.sha256), plugin, place, " has the sha256 ", in_quotes(build.sha256),
              ", which is not 64 hexadecimal digits");
  TITAN_CHECK(is_web_address(build.url) || is_harmless_path(build.url), plugin, place,
              " has the url ", in_quotes(build.url),
              ", which is neither https://... nor a path below the index");
  if (const Value* result = row.find("conformance")) build.conformance = *result;
  return build;
}

std::vector<std::string> kinds_of(const IndexedPlugin& plugin) {
  std::set<std::string> kinds;
  for (const PluginBuild& build : plugin.builds)
    for (const std::string& provided : build.provides)
      kinds.insert(provided.substr(0, provided.find(':')));
  return {kinds.begin(), kinds.end()};
}

Value list_of(const std::vector<std::string>& texts) {
  Value list = Value::list();
  for (const std::string& text : texts) list.as_list().emplace_back(text);
  return list;
}

}  // namespace

bool is_plain_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && text.front() != '.' &&
         text.front() != '-' && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '+' || c == '-';
         });
}

const IndexedPlugin* Index::find(std::string_view plugin) const {
  const auto found = std::find_if(plugins.begin(), plugins.end(),
                                  [&](const IndexedPlugin& one) { return one.name == plugin; });
  return found == plugins.end() ? nullptr : &*found;
}

Index parse_index(std::string_view text, const std::string& origin) {
  const Value content = parse_json(text);
  const Members top(content, origin);
  const int64_t schema = top.integer("schema", 1, INT64_MAX);
  TITAN_CHECK(schema == kIndexSchema, plugin, origin, " has the schema ", schema,
              ", this version reads ", kIndexSchema, "; use a newer Titan");
  Index index{.name = top.name("name"), .counter = top.integer("counter", 1, INT64_MAX)};
  if (top.find("expires")) index.expires = top.integer("expires", 0, INT64_MAX);
  for (const Value& key : top.list("keys")) {
    TITAN_CHECK(key.is_string(), plugin, origin, " has an item of 'keys' that is no text");
    index.keys.push_back(parse_public_key(key.as_string(), "a key of " + origin));
  }
  for (const Value& value : top.list("plugins")) {
    const Members row(value, origin + ": plugin " + std::to_string(index.plugins.size() + 1));
    IndexedPlugin plugin{.name = row.name("name")};
    TITAN_CHECK(!index.find(plugin.name), plugin, row.place(), " has the name '", plugin.name,
                "' of an earlier one");
    for (const Value& build : row.list("versions"))
      plugin.builds.push_back(parse_build(build, origin + ": plugin '" + plugin.name +
                                                     "', version " +
                                                     std::to_string(plugin.builds.size() + 1)));
    index.plugins.push_back(std::move(plugin));
  }
  return index;
}

std::string to_text(const Index& index) {
  Value content =
      Value::map({{"schema", kIndexSchema}, {"name", index.name}, {"counter", index.counter}});
  if (index.expires) content["expires"] = *index.expires;
  content["keys"] = Value::list();
  for (const PublicKey& key : index.keys) content["keys"].as_list().emplace_back(key.text());
  Value plugins = Value::list();
  for (const IndexedPlugin& plugin : index.plugins) {
    Value versions = Value::list();
    for (const PluginBuild& build : plugin.builds) {
      Value row = Value::map({{"version", build.version},
                              {"summary", build.summary},
                              {"provides", list_of(build.provides)},
                              {"built_for", build.built_for},
                              {"url", build.url},
                              {"sha256", build.sha256},
                              {"size", build.size},
                              {"signature", build.signature}});
      if (!build.conformance.is_null()) row["conformance"] = build.conformance;
      versions.as_list().push_back(std::move(row));
    }
    plugins.as_list().push_back(Value::map(
        {{"name", plugin.name}, {"kinds", list_of(kinds_of(plugin))}, {"versions", versions}}));
  }
  content["plugins"] = std::move(plugins);
  return to_json(content, 2) + "\n";
}

std::string comment_of(const Index& index) {
  return "titan-index name=" + index.name + " counter=" + std::to_string(index.counter);
}

std::string comment_of(const std::string& plugin, const PluginBuild& build) {
  const auto field = [&](const char* name) { return build.built_for.at(name).as_string(); };
  return "titan-plugin name=" + plugin + " version=" + build.version +
         " sdk_abi=" + field("sdk_abi") + " torch=" + field("torch") + " arch=" + field("arch");
}

PluginBuild described_build(const Value& manifest) {
  PluginBuild build;
  build.version = manifest.at("version").as_string();
  const std::string provides = manifest.at("provides").as_string();
  for (size_t begin = 0; begin < provides.size();) {
    const size_t end = std::min(provides.find(' ', begin), provides.size());
    if (end > begin) build.provides.push_back(provides.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!build.provides.empty())
    if (const Value* summary = manifest.find("summary:" + build.provides.front()))
      build.summary = summary->as_string();
  build.built_for = Value::map();
  for (const char* name : kBuiltFor) build.built_for[name] = manifest.at(name);
  // of the optional headers only those that it includes
  const Value* all = manifest.find("sdk_optional");
  std::string hashes;
  for (const Value& header : manifest.at("uses").as_list()) {
    const std::string wanted = " " + header.as_string() + ":";
    const std::string listed = " " + (all ? all->as_string() : std::string()) + " ";
    const size_t found = listed.find(wanted);
    if (found == std::string::npos) continue;
    hashes += (hashes.empty() ? "" : " ") +
              listed.substr(found + 1, listed.find(' ', found + 1) - found - 1);
  }
  build.built_for["sdk_optional"] = hashes;
  build.built_for["uses"] = manifest.at("uses");
  return build;
}

bool is_older(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const std::string_view one = a.substr(0, a.find('.')), other = b.substr(0, b.find('.'));
    uint64_t x = 0, y = 0;
    const auto is_number = [](std::string_view text, uint64_t& number) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      return error == std::errc() && end == text.data() + text.size();
    };
    if (is_number(one, x) && is_number(other, y)) {
      if (x != y) return x < y;
    } else if (one != other) {
      return one < other;
    }
    a.remove_prefix(std::min(one.size() + 1, a.size()));
    b.remove_prefix(std::min(other.size() + 1, b.size()));
  }
  return a.empty() && !b.empty();
}

}  // namespace titan::plugin_index
