// Reads small files of the kernel, such as /proc/meminfo. Used by the checks.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

namespace titan::commands {

/// Empty if it cannot be read.
inline std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The number that a file such as /sys/fs/cgroup/memory.max holds; absent for "max" and for none.
inline std::optional<int64_t> number_in_file(const std::string& path) {
  std::istringstream text(text_of_file(path));
  int64_t number = 0;
  if (text >> number) return number;
  return std::nullopt;
}

/// The number after `key` at the start of a line.
inline std::optional<int64_t> number_after(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest(line.substr(key.size()));
    int64_t number = 0;
    if (rest >> number) return number;
  }
  return std::nullopt;
}

}  // namespace titan::commands
