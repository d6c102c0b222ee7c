// The ELF reader on whole, truncated and corrupted files.
#include "core/plugin/elf_file.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "tests/core/plugin/plugin_fixture.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

/// The output of `command`.
std::string printed_by(const std::string& command) {
  std::string text;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe)) text += buffer;
  EXPECT_EQ(pipe ? ::pclose(pipe) : -1, 0) << command;
  return text;
}

/// Reads everything in the file. The only exception allowed is a plugin Error.
void read_all(const fs::path& file) {
  try {
    const ElfFile elf(file);
    elf.section(".titan_plugin");
    elf.dynamic();
    read_manifest(file);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::plugin) << e.what();
  }
}

TEST(ElfFile, FindsTheSectionThatReadelfShows) {
  const auto bytes = ElfFile(plugin_file("sound")).section(".titan_plugin");
  ASSERT_TRUE(bytes);
  const std::string shown = printed_by("readelf -p .titan_plugin " + plugin_file("sound").string());
  size_t fields = 0;
  for (size_t begin = 0; begin < bytes->size(); begin = bytes->find('\0', begin) + 1, ++fields)
    EXPECT_NE(shown.find(bytes->c_str() + begin), std::string::npos) << bytes->c_str() + begin;
  EXPECT_EQ(fields, 22u);
  EXPECT_FALSE(ElfFile(plugin_file("sound")).section(".no_such_section"));
}

TEST(ElfFile, ReadsTheNeededLibrariesThatReadelfShows) {
  for (const std::string name : {"sound", "missing_library", "second_torch_behind"}) {
    std::string needed;
    const ElfFile::Dynamic dynamic = ElfFile(plugin_file(name)).dynamic();
    for (const std::string& library : dynamic.needed) needed += library + "\n";
    EXPECT_EQ(needed, printed_by("readelf -dW " + plugin_file(name).string() +
                                 " | sed -n 's/.*(NEEDED).*\\[\\(.*\\)\\].*/\\1/p'"));
  }
  const auto search_path = ElfFile(plugin_file("second_torch_behind")).dynamic().search_path;
  EXPECT_TRUE(std::any_of(search_path.begin(), search_path.end(), [](const fs::path& folder) {
    return fs::exists(folder / "libbetween.so");
  }));
}

TEST(ElfFile, NamesWhatIsNoPluginFile) {
  TemporaryFolder folder;
  const auto refusal = [&](const fs::path& file) {
    return plugin_error([&] { read_manifest(file); });
  };

  write(folder.path() / "text.plugin.so", "#!/bin/sh\necho a script\n");
  expect_golden("plugin_not_elf", refusal(folder.path() / "text.plugin.so"), folder.path());

  std::string bytes = contents(plugin_file("sound"));
  bytes[EI_CLASS] = ELFCLASS32;
  write(folder.path() / "narrow.plugin.so", bytes);
  expect_golden("plugin_32_bit", refusal(folder.path() / "narrow.plugin.so"), folder.path());

  bytes = contents(plugin_file("sound"));
  bytes[EI_DATA] = ELFDATA2MSB;
  write(folder.path() / "big_endian.plugin.so", bytes);
  expect_golden("plugin_big_endian", refusal(folder.path() / "big_endian.plugin.so"),
                folder.path());

  write(folder.path() / "empty.plugin.so", "");
  expect_golden("plugin_empty_file", refusal(folder.path() / "empty.plugin.so"), folder.path());
  fs::create_directory(folder.path() / "directory.plugin.so");
  expect_golden("plugin_directory", refusal(folder.path() / "directory.plugin.so"), folder.path());
  fs::create_symlink("gone.so", folder.path() / "link.plugin.so");
  expect_golden("plugin_dangling_link", refusal(folder.path() / "link.plugin.so"), folder.path());
  expect_golden("plugin_absent_file", refusal(folder.path() / "absent.plugin.so"), folder.path());
  ASSERT_EQ(::mkfifo((folder.path() / "pipe.plugin.so").c_str(), 0600), 0);
  expect_golden("plugin_pipe", refusal(folder.path() / "pipe.plugin.so"), folder.path());
  expect_golden("plugin_no_manifest", refusal(plugin_file("no_manifest")));
}

TEST(ElfFile, NamesAnExecutableThatIsNoLibrary) {
  TemporaryFolder folder;
  std::string bytes = contents(plugin_file("sound"));
  const Elf64_Half type = ET_EXEC;
  std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_type), &type, sizeof type);
  write(folder.path() / "program.plugin.so", bytes);
  EXPECT_NE(plugin_error([&] {
              read_manifest(folder.path() / "program.plugin.so");
            }).find("not a shared library"),
            std::string::npos);
}

TEST(ElfFile, NamesAFileWithoutReadPermission) {
  TemporaryFolder folder;
  const fs::path file = folder.path() / "secret.plugin.so";
  fs::copy_file(plugin_file("sound"), file);
  fs::permissions(file, fs::perms::none);
  fs::permissions(folder.path(), fs::perms::all);
  // root may read everything, so a child process under another user reads the file
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    try {
      read_manifest(file);
      ::_exit(3);
    } catch (const Error& e) {
      ::_exit(std::string_view(e.what()).ends_with("there is no permission to read it") ? 0 : 4);
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ElfFile, SaysThatATruncatedFileIsCutShort) {
  TemporaryFolder folder;
  const fs::path file = folder.path() / "cut.plugin.so";
  fs::copy_file(plugin_file("sound"), file);
  // from long to short: an error at every length, never a crash or half a manifest; the section
  // table, which the reader needs, is at the end
  for (size_t size = fs::file_size(file); size-- > 0; size -= size > 2048 ? 508 : 0) {
    fs::resize_file(file, size);
    EXPECT_THROW(read_manifest(file), Error) << size;
    if (size == 40)
      expect_golden("plugin_truncated", plugin_error([&] { read_manifest(file); }), folder.path());
  }
}

TEST(ElfFile, SurvivesCorruptHeaders) {
  TemporaryFolder folder;
  const fs::path file = folder.path() / "corrupt.plugin.so";
  const std::string whole = contents(plugin_file("sound"));
  write(file, whole);
  Elf64_Ehdr header;
  std::memcpy(&header, whole.data(), sizeof header);
  const size_t table_size = size_t{header.e_shnum} * sizeof(Elf64_Shdr);
  std::mt19937 random(7);
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  for (int round = 0; round < 1000; ++round) {
    std::vector<size_t> places;
    for (int i = 0; i < 4; ++i)
      places.push_back(random() % 2 ? random() % sizeof header
                                    : header.e_shoff + random() % table_size);
    for (const size_t at : places)
      bytes.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(random()));
    bytes.flush();
    read_all(file);
    for (const size_t at : places) bytes.seekp(static_cast<std::streamoff>(at)).put(whole[at]);
  }
}

}  // namespace
}  // namespace titan::core
