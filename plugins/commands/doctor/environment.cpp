// Environment variables that ranks read, and the locale.
#include <langinfo.h>
#include <net/if.h>

#include <clocale>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <titan/error.h>
#include <titan/program/environment.h>

#include "checks.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

struct NumberVariable {
  const char* name;
  int lowest;
  const char* breaks;
};
constexpr NumberVariable kNumbers[] = {
    {"RANK", 0, "the start of every run"},
    {"WORLD_SIZE", 1, "the start of every run"},
    {"LOCAL_RANK", 0, "the start of every run"},
    {"LOCAL_WORLD_SIZE", 1, "the choice of a GPU"},
    {"OMP_NUM_THREADS", 1, "LibTorch takes all processors in each rank"},
};

bool check_numbers(const Environment& environment, Findings& findings) {
  bool is_sound = true;
  for (const NumberVariable& variable : kNumbers) {
    try {
      environment.integer(variable.name, variable.lowest, INT32_MAX);
    } catch (const Error& e) {
      is_sound = false;
      findings.add({std::string("environment.") + variable.name, Health::problem, e.message(),
                    "an integer >= " + std::to_string(variable.lowest), variable.breaks,
                    std::string("unset ") + variable.name});
    }
  }
  return is_sound;
}

bool check_ranks(const Environment& environment, Findings& findings) {
  const auto rank = environment.integer("RANK", 0, INT32_MAX);
  const auto ranks = environment.integer("WORLD_SIZE", 1, INT32_MAX);
  if (rank && ranks && *rank >= *ranks) {
    findings.add({"environment.RANK", Health::problem, std::to_string(*rank),
                  "less than WORLD_SIZE, " + std::to_string(*ranks), "the start of every run",
                  "unset RANK WORLD_SIZE LOCAL_RANK"});
    return false;
  }
  return true;
}

bool check_folders(const Environment& environment, Findings& findings) {
  bool is_sound = true;
  std::istringstream folders(environment.get("TITAN_PLUGIN_PATH").value_or(""));
  std::error_code error;
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.empty() || fs::is_directory(folder, error)) continue;
    is_sound = false;
    findings.add({"environment.TITAN_PLUGIN_PATH", Health::warning, "there is no folder " + folder,
                  "folders of plugins", "plugins that are expected there are not found",
                  "mkdir -p " + folder + "; or unset TITAN_PLUGIN_PATH"});
  }
  const std::string temporary = environment.get("TMPDIR").value_or("/tmp");
  if (!fs::is_directory(temporary, error)) {
    is_sound = false;
    findings.add({"environment.TMPDIR", Health::problem, "there is no folder " + temporary,
                  "a folder for temporary files",
                  "titan bench, and libraries that need temporary files", "mkdir -p " + temporary});
  }
  return is_sound;
}

bool check_interface(const Environment& environment, Findings& findings) {
  const auto name = environment.get("GLOO_SOCKET_IFNAME");
  if (!name || ::if_nametoindex(name->c_str()) != 0) return true;
  findings.add({"environment.GLOO_SOCKET_IFNAME", Health::problem, "there is no interface " + *name,
                "a network interface: ip -brief link", "runs of several ranks on CPUs",
                "unset GLOO_SOCKET_IFNAME"});
  return false;
}

void check_locale(Findings& findings) {
  const char* set = std::setlocale(LC_CTYPE, "");
  const std::string wanted = std::getenv("LC_ALL")     ? std::getenv("LC_ALL")
                             : std::getenv("LC_CTYPE") ? std::getenv("LC_CTYPE")
                             : std::getenv("LANG")     ? std::getenv("LANG")
                                                       : "";
  const std::string charset = ::nl_langinfo(CODESET);
  if (set && charset == "UTF-8") return findings.ok("locale", std::string(set));
  if (wanted.empty()) return findings.ok("locale", "not set; titan prints UTF-8");
  findings.add({"locale", Health::warning, wanted + (set ? ", " + charset : ", not installed"),
                "UTF-8", "the terminal may show text of data and names wrongly",
                "export LC_ALL=C.UTF-8"});
}

}  // namespace

void check_environment(Findings& findings) {
  const Environment environment = Environment::of_process();
  bool is_sound = check_numbers(environment, findings);
  if (is_sound) is_sound = check_ranks(environment, findings);
  is_sound &= check_folders(environment, findings);
  is_sound &= check_interface(environment, findings);
  if (is_sound) findings.ok("environment", "no variable is wrong");
  check_locale(findings);
}

}  // namespace titan::commands
