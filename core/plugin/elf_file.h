// Reads facts about a shared library before it is opened: the bytes of one section, the libraries
// it needs and its search path for them. Used by manifest.cpp and needed_libraries.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace titan::core {

/// One 64-bit little-endian ELF shared library, open for reading. Nothing in the file is trusted:
/// every offset and size is checked against the file's length before it is used. Reads the headers
/// and the requested parts, never the whole file.
class ElfFile {
 public:
  /// Throws a plugin Error naming the file and why it is no shared library of this machine's kind.
  explicit ElfFile(std::filesystem::path file);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The bytes of the section `name`; absent when there is no such section or the file holds only
  /// its size.
  std::optional<std::string> section(std::string_view name) const;

  /// The entries of the dynamic section that decide which other libraries are loaded.
  struct Dynamic {
    std::vector<std::string> needed;  ///< DT_NEEDED, in order
    std::vector<std::filesystem::path>
        search_path;  ///< DT_RPATH or DT_RUNPATH with $ORIGIN replaced
  };
  Dynamic dynamic() const;

 private:
  struct Section {
    std::string name;
    uint32_t type = 0;
    uint32_t link = 0;
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  [[noreturn]] void refuse(const std::string& reason) const;
  void open();
  void read_sections();
  std::string read(uint64_t offset, uint64_t size, const char* what) const;
  std::string read(const Section& section) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t file_size_ = 0;
  std::vector<Section> sections_;
};

}  // namespace titan::core
