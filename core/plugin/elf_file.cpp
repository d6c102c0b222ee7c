#include "core/plugin/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <titan/error.h>

namespace titan::core {
namespace {

/// A copy of the T at `offset`, which the caller has checked to lie within `bytes`.
template <class T>
T at(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The zero-terminated string at `offset`; absent when it does not end within `table`.
std::optional<std::string> string_at(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  const size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(table.substr(offset, end - offset));
}

void replace_all(std::string& text, std::string_view from, const std::string& to) {
  for (size_t found = text.find(from); found != std::string::npos;
       found = text.find(from, found + to.size()))
    text.replace(found, from.size(), to);
}

std::vector<std::filesystem::path> split_search_path(std::string_view text,
                                                     const std::string& origin) {
  std::vector<std::filesystem::path> folders;
  while (!text.empty()) {
    const size_t end = std::min(text.find(':'), text.size());
    std::string folder(text.substr(0, end));
    replace_all(folder, "${ORIGIN}", origin);
    replace_all(folder, "$ORIGIN", origin);
    if (!folder.empty()) folders.push_back(std::filesystem::path(folder).lexically_normal());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return folders;
}

}  // namespace

ElfFile::ElfFile(std::filesystem::path file) : path_(std::move(file)) {
  try {
    open();
    read_sections();
  } catch (...) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw;
  }
}

ElfFile::~ElfFile() {
  ::close(descriptor_);
}

void ElfFile::refuse(const std::string& reason) const {
  fail(ErrorKind::plugin, "cannot read plugin file ", path_.string(), ": ", reason);
}

void ElfFile::open() {
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0) {
    const int error = errno;
    std::error_code ignored;
    if (error == ENOENT &&
        std::filesystem::is_symlink(std::filesystem::symlink_status(path_, ignored)))
      refuse("it is a link to " + std::filesystem::read_symlink(path_, ignored).string() +
             ", which does not exist");
    if (error == ENOENT) refuse("it does not exist");
    refuse(std::generic_category().message(error));
  }
  if (S_ISDIR(info.st_mode)) refuse("it is a directory");
  if (!S_ISREG(info.st_mode)) refuse("it is not a regular file");
  file_size_ = static_cast<uint64_t>(info.st_size);

  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0 && errno == EACCES) refuse("there is no permission to read it");
  if (descriptor_ < 0) refuse(std::generic_category().message(errno));
}

std::string ElfFile::read(uint64_t offset, uint64_t size, const char* what) const {
  if (offset > file_size_ || size > file_size_ - offset)
    refuse(titan::detail::concat("it is cut short: its ", what, " takes ", size,
                                 " bytes from byte ", offset, " on, the file has ", file_size_,
                                 "; copy or build it again"));
  std::string bytes(size, '\0');
  for (uint64_t done = 0; done < size;) {
    const ssize_t count =
        ::pread(descriptor_, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(std::generic_category().message(errno));
    if (count == 0) refuse("it became shorter while it was read");
    done += static_cast<uint64_t>(count);
  }
  return bytes;
}

std::string ElfFile::read(const Section& section) const {
  return read(section.offset, section.size, ("section " + section.name).c_str());
}

void ElfFile::read_sections() {
  const std::string head =
      read(0, std::min<uint64_t>(sizeof(Elf64_Ehdr), file_size_), "ELF header");
  if (!head.starts_with(std::string_view(ELFMAG, SELFMAG))) refuse("it is not an ELF file");
  if (head.size() > EI_CLASS && head[EI_CLASS] != ELFCLASS64)
    refuse("it is a 32-bit ELF file, this program loads 64-bit ones");
  if (head.size() > EI_DATA && head[EI_DATA] != ELFDATA2LSB)
    refuse("it is a big-endian ELF file, this program loads little-endian ones");
  if (head.size() < sizeof(Elf64_Ehdr))
    read(0, sizeof(Elf64_Ehdr), "ELF header");  // says by how much it is cut short

  const auto header = at<Elf64_Ehdr>(head, 0);
  if (header.e_type != ET_DYN) refuse("it is an ELF file, but not a shared library");
  if (header.e_shoff == 0 || header.e_shnum == 0) refuse("it has no section table");
  if (header.e_shentsize != sizeof(Elf64_Shdr))
    refuse("its section table has entries of an unknown size");
  if (header.e_shstrndx >= header.e_shnum)
    refuse("its section table names a string section that it does not have");

  const std::string table =
      read(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), "section table");
  const auto raw = [&](size_t index) { return at<Elf64_Shdr>(table, index * sizeof(Elf64_Shdr)); };
  const std::string names =
      read(raw(header.e_shstrndx).sh_offset, raw(header.e_shstrndx).sh_size, "section names");
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr entry = raw(i);
    const auto name = string_at(names, entry.sh_name);
    if (!name)
      refuse("the name of its section " + std::to_string(i) + " lies outside the section names");
    sections_.push_back({*name, entry.sh_type, entry.sh_link, entry.sh_offset, entry.sh_size});
  }
}

std::optional<std::string> ElfFile::section(std::string_view name) const {
  for (const Section& section : sections_)
    if (section.name == name && section.type != SHT_NOBITS) return read(section);
  return std::nullopt;
}

ElfFile::Dynamic ElfFile::dynamic() const {
  Dynamic result;
  for (const Section& section : sections_) {
    if (section.type != SHT_DYNAMIC) continue;
    if (section.link >= sections_.size())
      refuse("its dynamic section names a string section that it does not have");
    const std::string entries = read(section);
    const std::string strings = read(sections_[section.link]);
    const std::string origin = std::filesystem::absolute(path_).parent_path().string();
    std::string rpath, runpath;
    for (size_t offset = 0; offset + sizeof(Elf64_Dyn) <= entries.size();
         offset += sizeof(Elf64_Dyn)) {
      const auto entry = at<Elf64_Dyn>(entries, offset);
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_RPATH && entry.d_tag != DT_RUNPATH)
        continue;
      const auto text = string_at(strings, entry.d_un.d_val);
      if (!text) refuse("its dynamic section points outside its strings");
      if (entry.d_tag == DT_NEEDED) result.needed.push_back(*text);
      if (entry.d_tag == DT_RPATH) rpath = *text;
      if (entry.d_tag == DT_RUNPATH) runpath = *text;
    }
    result.search_path = split_search_path(runpath.empty() ? rpath : runpath, origin);
    break;
  }
  return result;
}

}  // namespace titan::core
