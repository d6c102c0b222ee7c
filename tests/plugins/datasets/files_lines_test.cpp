// Lines, open files, and the files that a path selects.
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "plugins/datasets/common/line_index.h"
#include "plugins/datasets/common/line_reader.h"
#include "plugins/datasets/common/open_files.h"
#include "plugins/datasets/common/source_files.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::datasets {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

using Names = std::vector<std::string>;

TEST(LineIndex, FindsLinesAcrossTheChunksItReads) {
  // a line end, a blank line or a byte order mark may occur anywhere around a chunk's border
  TestFolder folder;
  constexpr size_t kBorder = size_t{256} << 10;
  for (size_t shift = 0; shift < 8; ++shift) {
    const std::string first(kBorder - shift, 'x');
    const std::string content = "\xEF\xBB\xBF" + first + "\n \r\n\ny\n" + first + "\nz";
    const InputFile file(folder.write("a", content));
    std::vector<uint64_t> starts;
    index_lines(file.path(), starts);
    const uint64_t y = content.find('y'), z = content.find('z');
    EXPECT_EQ(starts, (std::vector<uint64_t>{3, y, y + 2, z}));
    EXPECT_EQ(line_number(file, y), 4);
    EXPECT_EQ(line_number(file, z), 6);
  }
}

TEST(LineReader, ContinuesBehindAnyOfItsLines) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::string content = random() % 2 ? "\xEF\xBB\xBF" : "";
    for (int i = 0; i < 30; ++i) {
      content += random() % 3 ? std::string(1 + random() % 30000, static_cast<char>('a' + i % 26))
                              : std::string(random() % 3, ' ');
      if (i < 29 || random() % 2) content += random() % 2 ? "\n" : "\r\n";
    }
    std::vector<std::string> lines;
    std::vector<LinePosition> behind = {{}};
    LineReader reader(read_memory(content, "a"));
    for (std::string_view line; reader.next(line);) {
      EXPECT_EQ(content.compare(reader.line_offset(), line.size(), line), 0);
      lines.emplace_back(line);
      behind.push_back(reader.position());
    }
    for (size_t i = 0; i < behind.size(); ++i) {
      LineReader jumped(read_memory(std::string_view(content).substr(behind[i].offset), "a"),
                        behind[i]);
      LineReader skipped(read_memory(content, "a"));
      skipped.skip_to(behind[i]);
      for (LineReader* resumed : {&jumped, &skipped}) {
        EXPECT_EQ(resumed->position().lines, behind[i].lines);
        std::string_view line;
        for (size_t k = i; k < lines.size(); ++k) {
          ASSERT_TRUE(resumed->next(line));
          ASSERT_EQ(line, lines[k]);
        }
        EXPECT_FALSE(resumed->next(line));
        EXPECT_EQ(resumed->position().offset, content.size());
      }
    }
  }
}

TEST(LineReader, RefusesToSkipToWhereNoLineEnds) {
  const std::string content = "one\ntwo\nthree";
  for (const auto& [lines, offset] : std::vector<std::pair<int64_t, uint64_t>>{
           {1, 3}, {1, 5}, {2, 4}, {0, 4}, {1, 0}, {2, 14}, {3, 14}, {2, 12}, {2, 13}, {4, 13}}) {
    LineReader reader(read_memory(content, "a.txt"));
    const Error error = error_of([&] { reader.skip_to({lines, offset}); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_TRUE(holds(error.what(), "cannot continue 'a.txt' at byte "));
  }
  LineReader reader(read_memory(content, "a.txt"));
  reader.skip_to({3, 13});
  std::string_view line;
  EXPECT_FALSE(reader.next(line));
}

TEST(LineReader, RefusesALineAboveTheLimit) {
  const std::string content = "short\n" + std::string(2000000, 'x') + "\n";
  LineReader fits(read_memory(content, "a"), {}, 2000001);
  std::string_view line;
  EXPECT_TRUE(fits.next(line) && fits.next(line));
  LineReader refuses(read_memory(content, "dump.bin"), {}, 1000000);
  EXPECT_TRUE(refuses.next(line));
  const Error error = error_of([&] { refuses.next(line); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(error.what(), "dump.bin:2: the line is longer than 1000000 bytes"));
}

size_t num_descriptors() {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST(OpenFiles, StayWithinTheirBoundAndGiveTheRightFile) {
  TestFolder folder;
  OpenFiles files(4);
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i);
    files.add(folder.write(name, name), name.size());
  }
  const size_t before = num_descriptors();
  std::mt19937 random(1);
  std::string content;
  for (int i = 0; i < 500; ++i) {
    const size_t wanted = random() % files.size();
    const auto file = files.open(wanted);
    file->read(0, file->size(), content);
    ASSERT_EQ(content, std::to_string(wanted));
    ASSERT_LE(num_descriptors(), before + 5);  // and the one held here
  }
  const auto held = files.open(3);
  EXPECT_EQ(files.open(3), held);  // not opened again
}

TEST(OpenFiles, MayBeUsedByAnyNumberOfThreads) {
  TestFolder folder;
  OpenFiles files(2);
  for (int i = 0; i < 6; ++i) files.add(folder.write(std::to_string(i), std::to_string(i)), 1);
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&files, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 1000; ++i) {
        const size_t wanted = random() % files.size();
        std::string content;
        files.open(wanted)->read(0, 1, content);
        EXPECT_EQ(content, std::to_string(wanted));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(OpenFiles, NoticeAChangedSize) {
  TestFolder folder;
  OpenFiles files;
  files.add(folder.write("a", "four"), 5);
  EXPECT_TRUE(holds(error_of([&] { files.open(0); }).what(), "has changed from 5 to 4 bytes"));
}

Names names_of(const std::vector<SourceFile>& files) {
  Names names;
  for (const SourceFile& file : files) names.push_back(file.name);
  return names;
}

TEST(SourceFiles, AreSortedByNameAndChosenBySuffix) {
  TestFolder folder;
  for (const char* name : {"b.json", "a10.json", "a2.json", "a.json.gz", ".hidden.json", "c.txt",
                           "json", "inner/d.json", "folder.json/e.json"})
    folder.write(std::string("x/") + name, "{}");
  const Names suffixes = {".json", ".json.gz"};
  EXPECT_EQ(names_of(find_source_files(folder.at("x"), suffixes)),
            (Names{"a.json.gz", "a10.json", "a2.json", "b.json"}));
  EXPECT_EQ(names_of(find_source_files(folder.at("x/*.json"), suffixes)),
            (Names{"a10.json", "a2.json", "b.json"}));
  EXPECT_EQ(names_of(find_source_files(folder.at("x/*/*"), {})),
            (Names{"folder.json/e.json", "inner/d.json"}));
  EXPECT_EQ(names_of(find_source_files(folder.at("x/c.txt"), suffixes)), Names{"c.txt"});
  const Error error = error_of([&] { find_source_files(folder.at("x/inner"), {".gz", ".zst"}); });
  EXPECT_TRUE(holds(error.what(), "inner' holds no file that matches *.gz, *.zst"));
}

}  // namespace
}  // namespace titan::datasets
