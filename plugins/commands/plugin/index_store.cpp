#include "index_store.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <titan/error.h>
#include <titan/files/file.h>

namespace titan::plugin_index {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kStoreSchema = 1;

AddedIndex read_row(const Value& row, const std::string& origin) {
  AddedIndex index;
  index.name = row.at("name").as_string();
  index.address = row.at("address").as_string();
  index.key = parse_public_key(row.at("key").as_string(), origin);
  index.counter = row.at("counter").as_integer();
  return index;
}

}  // namespace

fs::path store_file(const Environment& environment) {
  fs::path folder;
  if (const auto config = environment.get("XDG_CONFIG_HOME"))
    folder = *config;
  else if (const auto home = environment.get("HOME"))
    folder = fs::path(*home) / ".config";
  TITAN_CHECK(folder.is_absolute(), config,
              "neither XDG_CONFIG_HOME nor HOME is an absolute path, so there is no place for the "
              "list of indexes; set one of them");
  return folder / "titan/plugin_indexes.json";
}

IndexStore::IndexStore(fs::path file) : file_(std::move(file)) {
  std::error_code error;
  if (!fs::exists(file_, error)) return;
  const std::string origin = "the list of indexes " + file_.string();
  try {
    const Value content = read_json(file_);
    TITAN_CHECK(content.at("schema") == Value(kStoreSchema), config, "its schema is not ",
                kStoreSchema);
    for (const Value& row : content.at("indexes").as_list())
      indexes_.push_back(read_row(row, origin));
  } catch (Error& wrong) {
    throw Error(ErrorKind::config, "cannot read " + origin + ": " + wrong.message() +
                                       "; remove it and add the indexes again");
  }
}

const AddedIndex* IndexStore::find(std::string_view name) const {
  const auto found = std::find_if(indexes_.begin(), indexes_.end(),
                                  [&](const AddedIndex& one) { return one.name == name; });
  return found == indexes_.end() ? nullptr : &*found;
}

const AddedIndex* IndexStore::find_address(std::string_view address) const {
  const auto found = std::find_if(indexes_.begin(), indexes_.end(),
                                  [&](const AddedIndex& one) { return one.address == address; });
  return found == indexes_.end() ? nullptr : &*found;
}

void IndexStore::put(const AddedIndex& index) {
  const AddedIndex added = index;  // may be an item of the list
  std::erase_if(indexes_, [&](const AddedIndex& one) { return one.name == added.name; });
  indexes_.push_back(added);
  write();
}

void IndexStore::remove(std::string_view name) {
  std::erase_if(indexes_, [&](const AddedIndex& one) { return one.name == name; });
  write();
}

void IndexStore::write() const {
  Value rows = Value::list();
  for (const AddedIndex& index : indexes_)
    rows.as_list().push_back(Value::map({{"name", index.name},
                                         {"address", index.address},
                                         {"key", index.key.text()},
                                         {"counter", index.counter}}));
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  TITAN_CHECK(!error, io, "cannot make the folder ", file_.parent_path().string(), ": ",
              error.message());
  write_text_atomically(
      file_, to_json(Value::map({{"schema", kStoreSchema}, {"indexes", rows}}), 2) + "\n");
}

}  // namespace titan::plugin_index
