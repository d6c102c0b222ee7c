#include "declared.h"

#include <sys/stat.h>

#include <algorithm>
#include <sstream>
#include <system_error>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>
#include <titan/program/child.h>
#include <titan/program/environment.h>

#include "../common/child_output.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

constexpr double kLongest = 60;  // seconds; a hanging plugin must not block a shell for ever

std::string json_of(const fs::path& program, const std::vector<std::string>& folders) {
  std::vector<std::string> words = {"describe", "--all", "--json"};
  for (const std::string& folder : folders) words.insert(words.end(), {"--path", folder});
  ChildOutput child = output_of(program, words, kLongest);
  TITAN_CHECK(!child.is_late, io, "titan describe --all --json did not end in ", kLongest,
              " s; find the plugin that hangs: titan check FILE");
  TITAN_CHECK(child.succeeded(), io, "titan describe --all --json ", how_it_ended(child.status),
              ":\n", child.errors);
  return std::move(child.out);
}

/// Name, size and time of a file; empty if it does not exist.
std::string stamp_of(const fs::path& file) {
  struct stat found;
  if (::stat(file.c_str(), &found) != 0) return "";
  std::ostringstream text;
  text << file.string() << ' ' << found.st_size << ' ' << found.st_mtim.tv_sec << '.'
       << found.st_mtim.tv_nsec << '\n';
  return text.str();
}

std::vector<fs::path> searched(const fs::path& program, const std::vector<std::string>& folders) {
  std::vector<fs::path> all(folders.begin(), folders.end());
  std::istringstream more(Environment::of_process().get("TITAN_PLUGIN_PATH").value_or(""));
  for (std::string folder; std::getline(more, folder, ':');) all.emplace_back(folder);
  all.push_back(program.parent_path().parent_path() / "lib/titan/plugins");
  return all;
}

/// Changes when the program or any plugin file changes.
std::string stamp(const fs::path& program, const std::vector<std::string>& folders) {
  std::string text = stamp_of(program.parent_path() / "titan-train");
  for (const fs::path& folder : searched(program, folders)) {
    std::vector<std::string> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".so") files.push_back(stamp_of(entry.path()));
    std::sort(files.begin(), files.end());
    text += folder.string() + "\n";
    for (const std::string& file : files) text += file;
  }
  return hash_hex(text);
}

}  // namespace

Value declared(const fs::path& program, const std::vector<std::string>& folders) {
  return parse_json(json_of(program, folders));
}

fs::path declarations_file(const fs::path& program, const std::vector<std::string>& folders) {
  const Environment environment = Environment::of_process();
  fs::path cache = environment.get("XDG_CACHE_HOME").value_or("");
  if (cache.empty()) {
    const auto home = environment.get("HOME");
    if (!home) return {};
    cache = fs::path(*home) / ".cache";
  }
  std::string key;
  for (const fs::path& folder : searched(program, folders)) key += folder.string() + "\n";
  return cache / "titan" / ("declarations-" + hash64_hex(key) + ".json");
}

Value declared_once(const fs::path& program, const std::vector<std::string>& folders) {
  if (!fs::exists(program.parent_path() / "titan-train")) return {};
  const fs::path file = declarations_file(program, folders);
  const std::string fresh = stamp(program, folders) + "\n";
  std::error_code error;
  if (!file.empty() && fs::exists(file, error)) {
    try {
      const std::string text = read_text(file);
      if (text.starts_with(fresh)) return parse_json(std::string_view(text).substr(fresh.size()));
    } catch (const Error&) {  // unreadable or damaged: it is written again
    }
  }
  const std::string json = json_of(program, folders);
  Value value = parse_json(json);
  if (file.empty()) return value;
  fs::create_directories(file.parent_path(), error);
  try {
    if (!error) write_text_atomically(file, fresh + json);
  } catch (const Error&) {  // a full or read-only cache only costs time
  }
  return value;
}

}  // namespace titan::commands
