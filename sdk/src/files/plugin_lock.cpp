#include <titan/plugin_lock.h>

#include <algorithm>

#include <titan/error.h>
#include <titan/files/checksum.h>
#include <titan/files/file.h>
#include <titan/shown_text.h>
#include <titan/value.h>

namespace titan {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLockSchema = 1;

struct LockMember {
  const char* name;
  std::string LockedPlugin::*text;
};
constexpr LockMember kLockMembers[] = {{"name", &LockedPlugin::name},
                                       {"version", &LockedPlugin::version},
                                       {"sha256", &LockedPlugin::sha256},
                                       {"index", &LockedPlugin::index},
                                       {"key", &LockedPlugin::key}};

bool stays_below(const fs::path& path) {
  return !path.empty() && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

std::string text_member(const Value& row, const char* name, const std::string& place) {
  const Value* member = row.find(name);
  TITAN_CHECK(member && member->is_string() && !member->as_string().empty(), config, place,
              " needs the text '", name, "'");
  return member->as_string();
}

LockedPlugin read_row(const Value& row, const std::string& place) {
  TITAN_CHECK(row.is_map(), config, place, " is not an object");
  LockedPlugin plugin;
  for (const LockMember& member : kLockMembers)
    plugin.*member.text = text_member(row, member.name, place);
  plugin.file = text_member(row, "file", place);
  TITAN_CHECK(is_sha256(plugin.sha256), config, place, " has the sha256 ", in_quotes(plugin.sha256),
              ", which is not 64 hexadecimal digits");
  TITAN_CHECK(stays_below(plugin.file), config, place, " has the file ",
              in_quotes(plugin.file.string()), ", which is outside of the lock's folder");
  TITAN_CHECK(row.as_map().size() == std::size(kLockMembers) + 1, config, place,
              " has a member that this version does not know");
  return plugin;
}

}  // namespace

const LockedPlugin* PluginLock::find(std::string_view name) const {
  const auto found = std::find_if(plugins.begin(), plugins.end(),
                                  [&](const LockedPlugin& one) { return one.name == name; });
  return found == plugins.end() ? nullptr : &*found;
}

fs::path lock_file_of(const fs::path& configuration) {
  return fs::path(configuration).replace_extension(".lock");
}

PluginLock read_plugin_lock(const fs::path& file) {
  Value content;
  try {
    content = read_json(file);
  } catch (Error& error) {
    error.with_context("while the lock file of the plugins was read");
    throw;
  }
  const std::string name = "the lock file " + file.string();
  const Value* schema = content.find("schema");
  TITAN_CHECK(schema && schema->is_integer(), config, name, " has no integer 'schema'");
  TITAN_CHECK(schema->as_integer() == kLockSchema, config, name, " has the schema ",
              schema->as_integer(), ", this version reads ", kLockSchema);
  const Value* rows = content.find("plugins");
  TITAN_CHECK(rows && rows->is_list(), config, name, " has no list 'plugins'");
  PluginLock lock;
  for (const Value& row : rows->as_list()) {
    const std::string place = name + ": plugin " + std::to_string(lock.plugins.size() + 1);
    LockedPlugin plugin = read_row(row, place);
    TITAN_CHECK(!lock.find(plugin.name), config, place, " has the name ", in_quotes(plugin.name),
                " of an earlier one");
    lock.plugins.push_back(std::move(plugin));
  }
  return lock;
}

void write_plugin_lock(const fs::path& file, const PluginLock& lock) {
  std::vector<LockedPlugin> sorted = lock.plugins;
  std::sort(sorted.begin(), sorted.end(),
            [](const LockedPlugin& a, const LockedPlugin& b) { return a.name < b.name; });
  Value rows = Value::list();
  for (const LockedPlugin& plugin : sorted) {
    Value row = Value::map();
    for (const LockMember& member : kLockMembers) row[member.name] = plugin.*member.text;
    row["file"] = plugin.file.string();
    rows.as_list().push_back(std::move(row));
  }
  write_text_atomically(
      file, to_json(Value::map({{"schema", kLockSchema}, {"plugins", std::move(rows)}}), 2) + "\n");
}

}  // namespace titan
