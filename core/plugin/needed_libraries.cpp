#include "core/plugin/needed_libraries.h"

#include <link.h>

#include <algorithm>
#include <deque>
#include <set>
#include <system_error>

#include <titan/error.h>

#include "core/plugin/elf_file.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

/// libtorch.so, libtorch_cpu.so, libtorch_cuda.so, libc10.so, libc10_cuda.so, also with a version
/// suffix.
bool belongs_to_torch(const fs::path& library) {
  const std::string name = library.filename().string();
  return name.starts_with("libtorch") || name.starts_with("libc10.") || name.starts_with("libc10_");
}

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

/// The folder of the LibTorch in this process; empty if there is none.
fs::path torch_folder(const std::vector<fs::path>& loaded) {
  const auto found = std::find_if(loaded.begin(), loaded.end(), belongs_to_torch);
  return found == loaded.end() ? fs::path() : found->parent_path();
}

/// The file that the loader would find for `needed` by the search path of the library that needs
/// it; empty if that path does not lead to it (it may still be a system library, or loaded
/// already).
fs::path locate(const std::string& needed, const std::vector<fs::path>& search_path) {
  std::error_code error;
  if (needed.find('/') != std::string::npos)
    return fs::exists(needed, error) ? fs::path(needed) : fs::path();
  for (const fs::path& folder : search_path)
    if (fs::exists(folder / needed, error)) return folder / needed;
  return {};
}

/// Empty for a needed library that cannot be read: the loader skips it or reports the fault.
ElfFile::Dynamic dynamic_of(const fs::path& library, bool is_plugin) {
  try {
    return ElfFile(library).dynamic();
  } catch (const Error&) {
    if (is_plugin) throw;
    return {};
  }
}

}  // namespace

std::vector<fs::path> loaded_libraries() {
  std::vector<fs::path> libraries;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        if (info->dlpi_name && *info->dlpi_name)
          static_cast<std::vector<fs::path>*>(data)->emplace_back(info->dlpi_name);
        return 0;
      },
      &libraries);
  return libraries;
}

std::string second_torch_problem(const fs::path& plugin, const std::vector<fs::path>& loaded) {
  const fs::path own_folder = torch_folder(loaded);
  if (own_folder.empty()) return {};
  const auto is_loaded = [&](const fs::path& library) {
    return std::any_of(loaded.begin(), loaded.end(),
                       [&](const fs::path& one) { return is_same_file(one, library); });
  };

  std::deque<fs::path> to_read{plugin};
  std::set<fs::path> seen{plugin};
  for (; !to_read.empty(); to_read.pop_front()) {
    const fs::path& reader = to_read.front();
    const ElfFile::Dynamic dynamic = dynamic_of(reader, reader == plugin);
    for (const std::string& needed : dynamic.needed) {
      const fs::path found = locate(needed, dynamic.search_path);
      if (belongs_to_torch(needed)) {
        const fs::path own = own_folder / fs::path(needed).filename();
        const std::string who = reader == plugin ? "it" : reader.string() + ", which it needs,";
        std::error_code error;
        if (!found.empty() && !is_same_file(found, own) && !is_loaded(found))
          return who + " brings a LibTorch of its own: " + found.string();
        if (found.empty() && !fs::exists(own, error))
          return who + " needs " + needed + ", which the LibTorch of this program does not have";
      } else if (!found.empty() && seen.insert(found).second && !is_loaded(found)) {
        to_read.push_back(found);
      }
    }
  }
  return {};
}

}  // namespace titan::core
