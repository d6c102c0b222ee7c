// LibTorch and plugins: both are asked from programs of their own, since a library that aborts must
// not end the report.
#include <sys/wait.h>

#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>

#include <titan/error.h>
#include <titan/program/child.h>
#include <titan/program/environment.h>
#include <titan/program/installation.h>

#include "../common/child_output.h"
#include "checks.h"
#include "system_files.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

constexpr double kLongestStart = 120;  // seconds

std::string first_line(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  return line;
}

/// "2.15.0" in "titan 0.2.0 (commit ..., LibTorch 2.15.0, sdk ..., gcc 12, Release)".
std::string torch_of(const std::string& version) {
  const size_t at = version.find("LibTorch ");
  return at == std::string::npos ? ""
                                 : version.substr(at + 9, version.find_first_of(",)", at) - at - 9);
}

/// The variables with which `titan` starts titan-train; without a fitting LibTorch those of this
/// process, with which the loader then names the missing libraries.
std::vector<std::string> environment_of(const fs::path& trainer) {
  try {
    return environment_with_torch(trainer.parent_path().parent_path(), Environment::of_process());
  } catch (const Error&) {
    return environment_of_process();
  }
}

/// What the dynamic loader would load for a program, one line a library: "name => path (address)".
std::string loaded_by(const fs::path& program, std::vector<std::string> environment) {
  environment.push_back("LD_TRACE_LOADED_OBJECTS=1");
  return output_of(program, {}, kLongestStart, std::move(environment)).out;
}

std::string path_of(const std::string& libraries, const std::string& name) {
  std::istringstream lines(libraries);
  for (std::string line; std::getline(lines, line);) {
    const size_t arrow = line.find("=> ");
    if (line.find(name) == std::string::npos || arrow == std::string::npos) continue;
    const std::string path = line.substr(arrow + 3);
    return path.starts_with("not found") ? "" : path.substr(0, path.rfind(" ("));
  }
  return "";
}

/// "2.15.0" of torch's version.py, without "+cpu".
std::string version_in(const fs::path& torch) {
  const std::string text = text_of_file((torch / "version.py").string());
  const size_t at = text.find("__version__ = '");
  if (at == std::string::npos) return "";
  const size_t begin = at + 15;
  return text.substr(begin, text.find_first_of("'+", begin) - begin);
}

std::string install_torch(const std::string& version) {
  return "python3 -m pip install torch==" + version;
}

/// Loads each plugin of the folders that a user has added in a process of its own.
void check_each_file(const fs::path& program, const std::vector<std::string>& folders,
                     Findings& findings) {
  std::vector<std::string> all = folders;
  std::istringstream more(Environment::of_process().get("TITAN_PLUGIN_PATH").value_or(""));
  for (std::string folder; std::getline(more, folder, ':');) all.push_back(folder);
  std::error_code error;
  for (const std::string& folder : all)
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string path = entry.path().string();
      if (!path.ends_with(".plugin.so")) continue;
      const ChildOutput child =
          output_of(program, {"check", path, "--timeout", "20"}, kLongestStart);
      if (!child.succeeded())
        findings.add({"plugin_file", Health::problem, path + ": " + first_line(child.errors),
                      "a plugin that loads", "every job and command that looks at it",
                      "rm " + path + "; or see why: titan check " + path});
    }
}

}  // namespace

void check_torch(const fs::path& program, Findings& findings) {
  const fs::path trainer = program.parent_path() / "titan-train";
  const std::string breaks = "training, and every command that computes with tensors";
  try {
    const std::string own = first_line(output_of(program, {"--version"}, kLongestStart).out);
    const std::string wanted = torch_of(own);
    findings.ok("titan", own);
    const std::vector<std::string> environment = environment_of(trainer);
    const std::string libraries = loaded_by(trainer, environment);
    const std::string found = path_of(libraries, "libtorch_cpu.so");
    std::string missing;
    std::istringstream lines(libraries);
    for (std::string line; std::getline(lines, line);)
      if (line.find("=> not found") != std::string::npos)
        missing += (missing.empty() ? "" : " ") +
                   line.substr(line.find_first_not_of(" \t"), line.find(" =>") - 1);
    if (!missing.empty())
      findings.add(
          {"torch.libraries", Health::problem, "not found: " + missing,
           "every library of " + trainer.string(), breaks,
           missing.find("torch") != std::string::npos || missing.find("c10") != std::string::npos
               ? install_torch(wanted)
               : "install the package that has it, or add its folder: export "
                 "LD_LIBRARY_PATH=FOLDER"});
    if (!found.empty()) {
      const fs::path root = fs::path(found).parent_path().parent_path();
      const std::string version = version_in(root);
      if (version.empty() || version == wanted)
        findings.ok("torch.version",
                    (version.empty() ? "unknown" : version) + " in " + root.string());
      else
        findings.add(
            {"torch.version", Health::problem, version + " in " + root.string(), wanted,
             breaks + ": LibTorch promises no binary compatibility between releases",
             std::getenv("LD_LIBRARY_PATH") ? "unset LD_LIBRARY_PATH" : install_torch(wanted)});
    }
    if (!missing.empty()) return;
    const ChildOutput child = output_of(trainer, {"--version"}, kLongestStart, environment);
    if (child.succeeded())
      findings.ok("torch.loads", "yes");
    else
      findings.add(
          {"torch.loads", Health::problem,
           child.is_late
               ? "no: titan-train does not answer"
               : "no: titan-train " + how_it_ended(child.status) + ": " + first_line(child.errors),
           "LibTorch " + wanted, breaks,
           std::getenv("LD_LIBRARY_PATH") ? "unset LD_LIBRARY_PATH" : install_torch(wanted)});
  } catch (const Error& e) {
    findings.add({"torch.loads", Health::problem, e.what(), trainer.string(), breaks,
                  "install Titan again: cmake --install BUILD --prefix " +
                      program.parent_path().parent_path().string()});
  }
}

void check_plugins(const fs::path& program, const std::vector<std::string>& folders,
                   Findings& findings) {
  std::vector<std::string> words = {"describe", "--all", "--json"};
  for (const std::string& folder : folders) words.insert(words.end(), {"--path", folder});
  const std::string breaks = "jobs and commands that select what it provides";
  try {
    const ChildOutput child = output_of(program, words, kLongestStart);
    if (!child.succeeded()) {
      // of LibTorch, or of a plugin that ends the process
      findings.add({"plugins", Health::problem,
                    child.is_late ? "a plugin hangs while it is loaded"
                                  : "cannot be loaded: " + how_it_ended(child.status) + ": " +
                                        first_line(child.errors),
                    "every plugin loads", breaks, "titan list --files; titan check FILE"});
      check_each_file(program, folders, findings);
      return;
    }
    const Value declared = parse_json(child.out);
    int usable = 0;
    std::set<std::string> bad;
    for (const Value& file : declared.at("files").as_list()) {
      const Value* why = file.find("problem");
      if (!why) {
        usable += file.find("build") == nullptr;
        continue;
      }
      const std::string path = file.at("file").as_string();
      bad.insert(path);
      const bool is_stale = why->as_string().find("built with") != std::string::npos;
      const std::string build =
          "cmake -S SOURCE -B build -DTitan_ROOT=" + program.parent_path().parent_path().string() +
          " && cmake --build build";
      findings.add(
          {"plugin_file", Health::problem, path + ": " + why->as_string(),
           "a plugin that was built for this program", breaks,
           is_stale ? build + "; or rm " + path : "rm " + path + "; or build it again: " + build});
    }
    for (const Value& one : declared.at("unusable").as_list()) {
      const std::string path = one.at("file").as_string();
      if (!bad.insert(path).second) continue;
      --usable;
      findings.add({"plugin_file", Health::problem, path + ": " + one.at("problem").as_string(),
                    "a plugin that loads", breaks,
                    "rm " + path + "; or see why: titan check " + path});
    }
    findings.ok("plugins", std::to_string(usable) + " files can be used");
  } catch (const Error& e) {
    findings.add(
        {"plugins", Health::problem, e.what(), "every plugin loads", breaks, "titan list --files"});
  }
}

}  // namespace titan::commands
