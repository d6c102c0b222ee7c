// Shared by the tokenizer probes: files of strings, and CPU time of a thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <titan/error.h>

namespace titan::probe {

/// CPU time of this thread only, which a busy machine hardly changes.
inline double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

inline std::string read_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  TITAN_CHECK(in.is_open(), io, "cannot open ", path);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

/// Reads a strings file: for each string its length as 8 bytes, little-endian, then its bytes.
inline std::vector<std::string_view> cut(std::string_view content) {
  std::vector<std::string_view> strings;
  while (!content.empty()) {
    uint64_t length = 0;
    TITAN_CHECK(content.size() >= sizeof(length), data, "the strings file is cut short");
    std::memcpy(&length, content.data(), sizeof(length));
    content.remove_prefix(sizeof(length));
    TITAN_CHECK(length <= content.size(), data, "the strings file is cut short");
    strings.push_back(content.substr(0, length));
    content.remove_prefix(length);
  }
  return strings;
}

}  // namespace titan::probe
