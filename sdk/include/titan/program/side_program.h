// Finds programs that are installed next to a plugin, because they need a library that a training
// process must not load.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <string>

namespace titan {

/// The file of a program that titan_add_plugin() received as PROGRAMS. It is in the folder of the
/// plugin that calls this, or of the program into which the plugin is linked.
static inline std::filesystem::path side_program(const std::string& name) {
  static const char kHere = 0;
  Dl_info info{};
  std::filesystem::path file;
  if (::dladdr(&kHere, &info) != 0 && info.dli_fname) file = info.dli_fname;
  std::error_code unknown;
  if (file.extension() != ".so") file = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return std::filesystem::absolute(file).parent_path() / name;
}

}  // namespace titan
