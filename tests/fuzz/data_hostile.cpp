// Checks that each hostile file is refused with a data Error that says where it is wrong.
//
//   data_hostile FOLDER
//
// FOLDER has a folder of files for each entry of data_fuzz. Its file `expected` has lines of a
// file's name, a tab, and the text that the message must contain: the place and the reason.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <titan/error.h>

#include "tests/fuzz/data_entries.h"

namespace {

namespace fs = std::filesystem;
using titan::fuzz::FileKind;

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in.is_open()) throw std::runtime_error("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The problem with the refusal of a file; empty when there is none.
std::string problem(const FileKind& kind, const fs::path& path,
                    const std::vector<std::string>& expected) {
  const std::string content = content_of(path);
  try {
    kind.read(content, path.string());
  } catch (const titan::Error& e) {
    const std::string message = e.what();
    if (e.kind() != titan::ErrorKind::data) return "is refused with another kind: " + message;
    if (message.find(path.string()) == std::string::npos) return "is not named by: " + message;
    for (const std::string& part : expected)
      if (message.find(part) == std::string::npos)
        return "is expected to be refused with '" + part + "', got: " + message;
    return "";
  }
  return "is read";
}

int check(const FileKind& kind, const fs::path& folder) {
  std::map<std::string, std::vector<std::string>> expected;  // by file name
  std::ifstream lines(folder / "expected");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::string name;
    std::getline(parts, name, '\t');
    for (std::string part; std::getline(parts, part, '\t');) expected[name].push_back(part);
  }
  int num_wrong = 0;
  size_t num_files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name == "expected") continue;
    ++num_files;
    const std::string wrong = expected.contains(name) ? problem(kind, entry.path(), expected[name])
                                                      : "is not in 'expected'";
    if (wrong.empty()) continue;
    ++num_wrong;
    std::fprintf(stderr, "%s %s\n", entry.path().c_str(), wrong.c_str());
  }
  std::printf("%s: %zu hostile files\n", kind.name, num_files);
  if (num_files == 0 || num_files != expected.size()) {
    std::fprintf(stderr, "%s: %zu files, but %zu are expected\n", folder.c_str(), num_files,
                 expected.size());
    ++num_wrong;
  }
  return num_wrong;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: data_hostile FOLDER\n");
    return 2;
  }
  try {
    int num_wrong = 0;
    for (const FileKind& kind : titan::fuzz::file_kinds())
      num_wrong += check(kind, fs::path(argv[1]) / kind.name);
    return num_wrong == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
