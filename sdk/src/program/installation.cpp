#include <titan/program/installation.h>

#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>

#include <titan/error.h>

namespace titan {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraryPath = "LD_LIBRARY_PATH";
constexpr const char* kPathBefore = "TITAN_LD_LIBRARY_PATH";  // what kLibraryPath was
constexpr const char* kTorch = TITAN_TORCH_VERSION;

/// One place where LibTorch was looked for. `version` is empty if it has none.
struct Place {
  std::string name;  ///< "TITAN_TORCH_ROOT"
  fs::path root;     ///< the folder with lib/ and include/; empty if the place does not exist
  std::string version = {};
};

/// "2.15.0", from the header that TitanTorch.cmake reads as well.
std::string version_in(const fs::path& root) {
  std::error_code ignored;
  if (root.empty() || !fs::exists(root / "lib/libtorch_cpu.so", ignored)) return "";
  std::ifstream header(root / "include/torch/headeronly/version.h");
  std::string version;
  for (std::string word; header >> word;)
    if (word == "TORCH_VERSION_MAJOR" || word == "TORCH_VERSION_MINOR" ||
        word == "TORCH_VERSION_PATCH") {
      header >> word;
      version += (version.empty() ? "" : ".") + word;
    }
  return version;
}

fs::path torch_of_environment(const fs::path& environment) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(environment / "lib", ignored)) {
    const fs::path torch = entry.path() / "site-packages/torch";
    if (entry.path().filename().string().starts_with("python3") && fs::exists(torch, ignored))
      return torch;
  }
  return {};
}

/// The folder of the torch that python3 would import; the current folder does not count.
fs::path torch_of_python() {
  constexpr const char* kCommand =
      "python3 -c 'import sys; sys.path = [p for p in sys.path if p]\n"
      "import importlib.util; s = importlib.util.find_spec(\"torch\")\n"
      "print(s.submodule_search_locations[0] if s else \"\")' 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(kCommand, "r"), ::pclose);
  std::string text;
  for (int c = 0; pipe && (c = std::fgetc(pipe.get())) != EOF && c != '\n';)
    text += static_cast<char>(c);
  return text;
}

std::string wording(const Place& place) {
  std::string found = place.version.empty() ? "no LibTorch" : "LibTorch " + place.version;
  if (!place.root.empty()) found += " in " + place.root.string();
  return "\n  " + place.name + ": " + found;
}

[[noreturn]] void refuse(const std::vector<Place>& places) {
  std::string text;
  for (const Place& place : places) text += wording(place);
  fail(ErrorKind::config, "this titan was built for LibTorch ", kTorch,
       ", and works with no other version; found:", text,
       "\n  install it: pip install torch==", kTorch,
       "\n  or set TITAN_TORCH_ROOT to a folder with lib/ and include/ of LibTorch ", kTorch);
}

Place next_to(const fs::path& installation) {
  const fs::path root = installation.parent_path() / "torch";
  std::error_code ignored;
  return {"next to the installation", fs::exists(root, ignored) ? root : fs::path()};
}

/// The place to use; nothing if LibTorch lies next to the installation, where the programs' own
/// search path finds it.
std::optional<Place> find_torch(const fs::path& installation, const Environment& environment) {
  std::vector<Place> places;
  const auto fits = [&](Place place) {
    place.version = version_in(place.root);
    places.push_back(std::move(place));
    return places.back().version == kTorch;
  };
  // first, because plugins find this one by their own search paths as well
  if (fits(next_to(installation))) return std::nullopt;
  if (const auto root = environment.get("TITAN_TORCH_ROOT")) {
    if (!fits({"TITAN_TORCH_ROOT", fs::absolute(*root)})) refuse(places);
    return places.back();
  }
  if (const auto active = environment.get("VIRTUAL_ENV"))
    if (fits({"the active environment " + *active, torch_of_environment(*active)}))
      return places.back();
  if (fits({"python3", torch_of_python()})) return places.back();
  refuse(places);
}

}  // namespace

fs::path installation_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
}

std::string with_bundled_files(const std::string& path) {
  const fs::path relative = fs::path(path).lexically_normal();
  const std::string first = relative.empty() ? "" : relative.begin()->string();
  const bool ships = first == "train_configs" || relative.string().starts_with("tests/assets/");
  std::error_code ignored;
  if (!ships || fs::exists(path, ignored)) return path;
  const fs::path installed = installation_folder() / "share/titan" / relative;
  return fs::exists(installed, ignored) ? installed.string() : path;
}

std::vector<std::string> environment_with_torch(const fs::path& installation,
                                                const Environment& environment) {
  std::map<std::string, std::string> variables = environment.variables();
  std::error_code ignored;
  const bool is_build_tree = fs::exists(installation / "CMakeCache.txt", ignored);
  const auto place = is_build_tree ? std::nullopt : find_torch(installation, environment);
  if (place) {
    const auto before = environment.get(kLibraryPath);
    std::string path = (place->root / "lib").string();
    const fs::path arrow = place->root.parent_path() / "pyarrow";  // of the data set "parquet"
    if (fs::exists(arrow, ignored)) path += ":" + arrow.string();
    variables[kPathBefore] = before.value_or("");
    variables[kLibraryPath] = path + (before ? ":" + *before : "");
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

void restore_library_path() {
  const char* before = ::getenv(kPathBefore);
  if (!before) return;
  if (*before)
    ::setenv(kLibraryPath, before, 1);
  else
    ::unsetenv(kLibraryPath);
  ::unsetenv(kPathBefore);
}

}  // namespace titan
