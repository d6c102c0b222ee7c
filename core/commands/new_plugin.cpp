// titan new-plugin KIND OWNER/NAME: a complete plugin project to start from, copied from a template
// with names filled in.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <titan/program/terminal.h>

#include "core/base/arguments.h"
#include "core/commands/command.h"
#include "core/commands/kind_argument.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

/// Replacements for the placeholders of a template, in texts and in file names.
struct Names {
  std::string full_name;   ///< "acme/fast_adam"
  std::string owner;       ///< "acme"
  std::string name;        ///< "fast_adam"
  std::string class_name;  ///< "FastAdam"
  std::string library;     ///< "acme_fast_adam"
};

bool is_word(const std::string& text, std::string_view further) {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), [&](unsigned char c) {
           return std::isalnum(c) || further.find(static_cast<char>(c)) != std::string_view::npos;
         });
}

Names names_of(const std::string& full_name) {
  const size_t slash = full_name.find('/');
  TITAN_CHECK(slash != std::string::npos, config, "a plugin is named OWNER/NAME, got '", full_name,
              "'; names without an owner are those that ship with Titan");
  Names names{.full_name = full_name,
              .owner = full_name.substr(0, slash),
              .name = full_name.substr(slash + 1)};
  TITAN_CHECK(is_word(names.owner, "_-"), config, "the owner in '", full_name,
              "' must start with a letter and hold letters, digits, '_' and '-' only");
  TITAN_CHECK(is_word(names.name, "_"), config, "the name in '", full_name,
              "' must start with a letter and hold letters, digits and '_' only: it becomes the "
              "name of a class");
  bool starts_word = true;
  for (const char c : names.name) {
    if (c != '_')
      names.class_name +=
          starts_word ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    starts_word = c == '_';
  }
  names.library = names.owner + "_" + names.name;
  std::replace(names.library.begin(), names.library.end(), '-', '_');
  return names;
}

std::string filled_in(std::string text, const Names& names) {
  const std::pair<std::string_view, const std::string&> replacements[] = {
      {"@FULL_NAME@", names.full_name},
      {"@OWNER@", names.owner},
      {"@NAME@", names.name},
      {"@CLASS@", names.class_name},
      {"@LIBRARY@", names.library}};
  for (const auto& [placeholder, replacement] : replacements)
    for (size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos;
         at += replacement.size())
      text.replace(at, placeholder.size(), replacement);
  return text;
}

/// The folder above bin/ of this program.
fs::path prefix_of_program() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path();
}

/// The installed templates; a build tree uses those of the source tree.
fs::path template_folder() {
  const fs::path installed = prefix_of_program() / "share/titan/template";
  std::error_code error;
#ifdef TITAN_TEMPLATE_DIR
  if (!fs::is_directory(installed, error)) return TITAN_TEMPLATE_DIR;
#endif
  TITAN_CHECK(fs::is_directory(installed, error), io, "there are no templates in '",
              installed.string(), "'; install Titan again with cmake --install");
  return installed;
}

fs::path template_of(const std::string& kind) {
  const fs::path folder = template_folder();
  std::error_code error;
  if (fs::is_directory(folder / kind, error)) return folder / kind;
  std::vector<std::string> kinds;
  for (const auto& entry : fs::directory_iterator(folder))
    kinds.push_back(entry.path().filename().string());
  std::sort(kinds.begin(), kinds.end());
  std::string listed;
  for (const std::string& known : kinds) listed += (listed.empty() ? "" : ", ") + known;
  fail(ErrorKind::config, "there is no template for kind '", kind, "'; there are: ", listed);
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  TITAN_CHECK(in && !in.bad(), io, "cannot read '", path.string(), "'");
  return text;
}

/// Writes all files or none: on an error the written files are removed.
std::vector<fs::path> write_project(const fs::path& source, const fs::path& target,
                                    const Names& names) {
  std::error_code error;
  const bool is_empty_folder = fs::is_directory(target, error) && fs::is_empty(target, error);
  TITAN_CHECK(!fs::exists(fs::symlink_status(target, error)) || is_empty_folder, config, "'",
              target.string(), "' exists already; name another folder with --directory");
  std::vector<std::pair<fs::path, std::string>> files;
  for (const auto& entry : fs::recursive_directory_iterator(source))
    if (entry.is_regular_file())
      files.emplace_back(filled_in(fs::relative(entry.path(), source).string(), names),
                         filled_in(read_file(entry.path()), names));
  std::sort(files.begin(), files.end());

  std::vector<fs::path> written;
  try {
    for (const auto& [name, text] : files) {
      const fs::path path = target / name;
      fs::create_directories(path.parent_path(), error);
      TITAN_CHECK(!error, io, "cannot create the folder '", path.parent_path().string(),
                  "': ", error.message());
      std::ofstream out(path, std::ios::binary);
      out << text;
      out.close();
      TITAN_CHECK(out, io, "cannot write '", path.string(), "'");
      written.push_back(path);
    }
  } catch (...) {
    for (const fs::path& path : written) fs::remove(path, error);
    fs::remove(target, error);  // only if it is empty
    throw;
  }
  return written;
}

/// The lines of a configuration that select the new plugin.
std::string selection(const std::string& kind, const std::string& name) {
  if (kind == "dataset") return "[training]\n  dataset = \"" + name + "\"";
  if (kind == "logger") return "[metrics]\n  loggers = [\"console\", \"" + name + "\"]";
  if (kind == "converter") return "[model]\n  converters = [\"" + name + "\"]";
  if (kind == "parallelism") return "[parallelism]\n  further = [\"" + name + "\"]";
  if (kind == "model") return "[model]\n  name = \"" + name + "\"\n  flavor = \"small\"";
  if (kind == "flavor") return "[model]\n  flavor = \"" + name + "\"";
  return "[" + kind + "]\n  name = \"" + name + "\"";
}

void print_next_steps(const std::string& kind, const Names& names, const fs::path& folder) {
  const fs::path prefix = prefix_of_program();
  std::error_code error;
  print("\nbuild it:\n");
  std::string root = prefix.string();
  if (!fs::exists(prefix / "lib/cmake/Titan/TitanConfig.cmake",
                  error)) {  // a build tree: install it first
    root = "<prefix>";
    print("  cmake --install " + prefix.string() + " --prefix <prefix>\n");
  }
  const std::string directory = folder.string();
  const std::string plugins =
      (fs::absolute(folder) / "build/lib/titan/plugins").lexically_normal().string();
  print("  cmake -S " + directory + " -B " + directory + "/build -DTitan_ROOT=" + root +
        " && cmake --build " + directory + "/build\n");
  print("look at it:\n  titan check " + plugins + "/" + names.library + ".plugin.so\n");
  if (kind == "command") {
    print("use it:\n  TITAN_PLUGIN_PATH=" + plugins + " titan " + names.full_name + " --help\n");
    return;
  }
  print("train with it:\n  [plugins]\n  paths = [\"" + plugins + "\"]\n  " +
        selection(kind, names.full_name) + "\n");
}

}  // namespace

int run_new_plugin(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description flags;
  flags.add_options()("directory", po::value<std::string>()->value_name("FOLDER"),
                      "where to write it; default: ./NAME");
  const Arguments parsed = parse_arguments(
      "titan new-plugin KIND OWNER/NAME [--directory FOLDER]\n  KIND is one of " + listed_kinds(),
      flags, arguments, 2, 2);
  if (parsed.wants_help) return kExitDone;

  const std::string& kind = parsed.words[0];
  require_kind(kind);
  const Names names = names_of(parsed.words[1]);
  const fs::path folder = parsed.flags.count("directory")
                              ? fs::path(parsed.flags["directory"].as<std::string>())
                              : fs::path(names.name);
  for (const fs::path& path : write_project(template_of(kind), folder, names))
    print("wrote " + path.string() + "\n");
  print_next_steps(kind, names, folder);
  return kExitDone;
}

}  // namespace titan::core
